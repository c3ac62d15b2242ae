"""Keys by which callers are known, and what each may use."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from turnout.core.money import Micros

__all__ = ["KeyEntry", "KeyLimits", "KeyRecord", "Role"]

Role = Literal["models", "viewer", "member", "approver", "worker"]
"""What a key may do: ask models and nothing else; read the runs of its project and ask no model;
ask models, and read, submit and cancel runs; all that, and decide on calls that wait for a person;
ask models for whoever ordered a run that is worked on, charged to them, and nothing else.
"""


@dataclass(frozen=True, slots=True)
class KeyLimits:
    """Limits on all requests of one key; None: no limit."""

    requests_per_minute: int | None = None
    concurrency: int | None = None
    """Requests under way at once."""
    spend_per_day: Micros | None = None
    """From midnight to midnight, UTC."""


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """A key as it is kept: all but the key itself."""

    name: str
    project: str
    policies: tuple[str, ...]
    """Its own policy first, then those it may choose instead."""
    limits: KeyLimits
    created_at: datetime
    hint: str
    """The first and last characters, by which people recognise it."""
    admin: bool = False
    role: Role = "models"
    expires_at: datetime | None = None
    revoked_at: datetime | None = None


class KeyEntry(NamedTuple):
    """A key as the store knows it."""

    digest: str
    """SHA-256 of the key, in hexadecimal; it takes the whole key to make it."""
    record: KeyRecord
