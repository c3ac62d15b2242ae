"""Moments as people write them."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from turnout.errors import UsageError

__all__ = ["moment_of"]

_AGO: Final = re.compile(r"([0-9]{1,5})([mhdw])", re.ASCII)
_UNITS: Final = {
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_FIRST: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST: Final = datetime(9000, 1, 1, tzinfo=UTC)


def moment_of(text: str, now: datetime) -> datetime:
    """Return the moment that `7d`, `12h`, `2026-12-31` or an ISO 8601 time means, in UTC.

    `7d` is seven days before `now`; a date is its first moment; without an offset a time is one
    of UTC. `UsageError` where it is none of these.
    """
    ago = _AGO.fullmatch(text)
    try:
        if ago is not None:
            moment = now - int(ago[1]) * _UNITS[ago[2]]
        else:
            moment = datetime.fromisoformat(text)
            moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        moment = _LAST
    if not _FIRST <= moment < _LAST:
        raise UsageError(
            f"{text!r} is no moment.", mend="Write 7d, 12h, 2026-12-31 or 2026-12-31T14:00:00Z."
        )
    return moment
