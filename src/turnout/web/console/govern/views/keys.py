"""Keys as they are kept; the key itself is nowhere."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from turnout.core.govern.keys import KeyRecord, Role
from turnout.core.money import format_usd
from turnout.gateway.keys.desk import KeyState, state_of
from turnout.web.console.govern.views.words import count_text

__all__ = ["ROLES", "KeyLine", "RoleChoice", "key_line"]


@dataclass(frozen=True, slots=True)
class RoleChoice:
    """A role, and what a key of it may do."""

    role: Role
    may: str


ROLES: Final = (
    RoleChoice("models", "asks models; sees no run"),
    RoleChoice("viewer", "reads the runs of its project; asks no model"),
    RoleChoice("member", "asks models; starts and stops runs"),
    RoleChoice("approver", "all that; approves and rejects what waits for a person"),
    RoleChoice("worker", "asks models for whoever ordered a run; for workers elsewhere"),
)
"""Every role, from the least on."""


@dataclass(frozen=True, slots=True)
class KeyLine:
    """One key."""

    record: KeyRecord
    state: KeyState
    limits: tuple[str, ...]
    """In words; empty: none."""


def key_line(record: KeyRecord, now: datetime) -> KeyLine:
    """Return what is shown of a key."""
    limits = record.limits
    said = []
    if limits.requests_per_minute is not None:
        said.append(f"{count_text(limits.requests_per_minute, 'request')} a minute")
    if limits.concurrency is not None:
        said.append(f"{limits.concurrency:,} at once")
    if limits.spend_per_day is not None:
        said.append(f"{format_usd(limits.spend_per_day)} a day")
    return KeyLine(record, state_of(record, now), tuple(said))
