"""Who changed what: orders, decisions, keys, policies and whatever else is governed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

__all__ = ["AuditFilter", "AuditLine", "AuditPage", "Audited"]


@dataclass(frozen=True, slots=True)
class Audited:
    """A change that was made; nothing ever alters it."""

    at: datetime
    actor: str
    """Name of the key; `NAME@host` of who did it from the command line of the machine."""
    project: str
    """The actor's; empty for one of the command line."""
    action: str
    """Such as `order_run`, `approve_call`, `create_key` or `put_policy`."""
    subject: str
    """The run, key, policy or webhook; empty where it is about no one of them."""
    detail: Mapping[str, str] = field(default_factory=dict)
    """What it was changed to, as far as that is no text of a person."""


@dataclass(frozen=True, slots=True)
class AuditLine:
    """A change at its place."""

    number: int
    """Grows with each change."""
    change: Audited


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which changes are listed; None leaves none out."""

    actor: str | None = None
    project: str | None = None
    action: str | None = None
    subject: str | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Some changes, newest first."""

    lines: tuple[AuditLine, ...]
    before: int | None
    """`number` to go on before; None where nothing follows."""
