"""Figures as people read them."""

from datetime import datetime
from typing import Final

__all__ = ["age_between", "age_text", "count_text", "milliseconds_text", "share_text", "whole_text"]

_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_SECOND_MS: Final = 1_000
_TENTHS_BELOW_MS: Final = 10_000


def age_text(seconds: float) -> str:
    """Return how long something is or was, in its largest fitting unit."""
    whole = max(0, int(seconds))
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min"
    if whole < 2 * _DAY:
        return f"{whole // _HOUR} h"
    return f"{whole // _DAY} d"


def age_between(then: datetime, now: datetime) -> str:
    """Return how long ago a moment was."""
    return age_text((now - then).total_seconds())


def share_text(value: float) -> str:
    """Return a share from 0 to 1 in per cent, with a tenth where whole ones would hide it."""
    percent = 100 * value
    near_an_end = 0 < percent < 1 or 99 < percent < 100
    return f"{percent:.1f} %" if near_an_end else f"{percent:.0f} %"


def milliseconds_text(value: float) -> str:
    """Return a duration in milliseconds or seconds."""
    if value < _SECOND_MS:
        return f"{value:.0f} ms"
    digits = 2 if value < _TENTHS_BELOW_MS else 1
    return f"{value / _SECOND_MS:.{digits}f} s"


def count_text(count: int, noun: str) -> str:
    """Return a number with its noun, in the plural where it is not one."""
    return f"{count:,} {noun if count == 1 else noun + 's'}"


def whole_text(value: float) -> str:
    """Return a count for an axis, with a tenth where the axis has parts of one."""
    return f"{value:,.0f}" if value >= 1 or value == 0 else f"{value:.1f}"
