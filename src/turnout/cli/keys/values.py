"""What the options of `turnout keys` take."""

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, TypeVar

import click

from turnout.core.govern.keys import KeyLimits, KeyRecord, Role
from turnout.core.money import Micros, usd_to_micros

__all__ = ["EXPIRY", "LIMIT", "SPEND", "Wanted"]

Value = TypeVar("Value")

_NONE: Final = "none"
_MOST: Final = 2**31 - 1
_SPAN: Final = re.compile(r"([1-9][0-9]{0,4})([dh])")


class _Limit(click.ParamType[int | str]):
    name = "N"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        """Return a count above 0, or that there is no limit."""
        if value == _NONE:
            return value
        if not (value.isascii() and value.isdecimal() and 0 < int(value[:11]) <= _MOST):
            self.fail("give a whole number above 0, or `none`", param, ctx)
        return int(value)


class _Spend(click.ParamType[Micros | str]):
    name = "USD"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> Micros | str:
        """Return an amount above 0, or that there is no limit."""
        if value == _NONE:
            return value
        try:
            amount = usd_to_micros(value)
        except ValueError:
            amount = Micros(0)
        if amount <= 0:
            self.fail("give US dollars above 0, such as 12.50, or `none`", param, ctx)
        return amount


class _Expiry(click.ParamType[datetime | str]):
    name = "WHEN"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime | str:
        """Return a moment in UTC, or that it never comes."""
        if value == "never":
            return _NONE
        span = _SPAN.fullmatch(value)
        try:
            if span is not None:
                number = int(span[1])
                length = timedelta(days=number) if span[2] == "d" else timedelta(hours=number)
                return datetime.now(UTC) + length
            moment = datetime.fromisoformat(value)
            return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            self.fail("give `30d`, `12h`, a date such as 2027-01-31, or `never`", param, ctx)


LIMIT: Final = _Limit()
SPEND: Final = _Spend()
EXPIRY: Final = _Expiry()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the options say of a key; None and empty: nothing."""

    project: str | None
    policies: tuple[str, ...]
    requests_per_minute: int | Literal["none"] | None
    concurrency: int | Literal["none"] | None
    spend_per_day: Micros | Literal["none"] | None
    expires: datetime | Literal["none"] | None
    admin: bool | None
    role: Role | None

    def of(self, record: KeyRecord) -> KeyRecord:
        """Return a record with that."""
        limits = record.limits
        return replace(
            record,
            project=record.project if self.project is None else self.project,
            policies=self.policies or record.policies,
            limits=KeyLimits(
                _said(self.requests_per_minute, limits.requests_per_minute),
                _said(self.concurrency, limits.concurrency),
                _said(self.spend_per_day, limits.spend_per_day),
            ),
            expires_at=_said(self.expires, record.expires_at),
            admin=record.admin if self.admin is None else self.admin,
            role=record.role if self.role is None else self.role,
        )


def _said(value: Value | Literal["none"] | None, before: Value | None) -> Value | None:
    if value is None:
        return before
    return None if value == _NONE else value
