"""Keys for people and for programs."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from turnout.cli.terminal import safe
from turnout.core.govern.keys import KeyRecord
from turnout.core.json import JsonObject
from turnout.core.money import format_usd
from turnout.gateway.keys.desk import state_of

__all__ = ["key_json", "key_lines"]

_HEAD = ("NAME", "KEY", "PROJECT", "ROLE", "POLICIES", "LIMITS", "STATE")


def key_json(record: KeyRecord, now: datetime) -> JsonObject:
    """Return a key as `GET /v1/keys` shows it."""
    limits = record.limits
    return {
        "name": record.name,
        "project": record.project,
        "policies": list(record.policies),
        "requests_per_minute": limits.requests_per_minute,
        "concurrency": limits.concurrency,
        "spend_per_day_micros": limits.spend_per_day,
        "admin": record.admin,
        "role": record.role,
        "hint": record.hint,
        "state": state_of(record, now),
        "created_at": record.created_at.isoformat(),
        "expires_at": _moment(record.expires_at),
        "revoked_at": _moment(record.revoked_at),
    }


def key_lines(records: Sequence[KeyRecord], now: datetime) -> Iterator[str]:
    """Yield a table, its head first."""
    rows = [_HEAD, *(_row(record, now) for record in records)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    for row in rows:
        cells = zip(row, widths, strict=True)
        yield "  ".join(cell.ljust(width) for cell, width in cells).rstrip()


def _row(record: KeyRecord, now: datetime) -> tuple[str, ...]:
    state: str = state_of(record, now)
    if state == "active" and record.expires_at is not None:
        state = f"until {record.expires_at:%Y-%m-%d %H:%M}"
    name = f"{record.name} (admin)" if record.admin else record.name
    held, may_use = (name, record.hint, record.project, record.role), ", ".join(record.policies)
    cells = (*held, may_use, _limits(record), state)
    return tuple(safe(cell) for cell in cells)


def _limits(record: KeyRecord) -> str:
    limits = record.limits
    said = [
        f"{limits.requests_per_minute}/min" if limits.requests_per_minute is not None else "",
        f"{limits.concurrency} at once" if limits.concurrency is not None else "",
        f"{format_usd(limits.spend_per_day)}/day" if limits.spend_per_day is not None else "",
    ]
    return ", ".join(filter(None, said)) or "none"


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
