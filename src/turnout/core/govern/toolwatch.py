"""Which tools were declared, by whom, and how a policy's list fits them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

__all__ = ["QUIET_DAYS", "OutsideTool", "PolicyDay", "SeenTool", "ToolHit", "ToolReport"]

QUIET_DAYS = 7
"""Days without a tool outside the list after which the list may be enforced."""


@dataclass(frozen=True, slots=True)
class SeenTool:
    """A tool that requests of one key declared."""

    project: str
    key: str
    tool: str
    first_at: datetime
    last_at: datetime
    requests: int
    """That declared it."""
    calls: int
    """Requests in whose answer a model called it."""


@dataclass(frozen=True, slots=True)
class OutsideTool:
    """A tool outside a policy's list, as one key sent it on one day, UTC."""

    policy: str
    day: str
    """As in `2026-12-31`."""
    key: str
    tool: str
    served: int
    """Requests that were served all the same: the list is a dry run."""
    refused: int
    last_at: datetime


@dataclass(frozen=True, slots=True)
class ToolHit:
    """The same over all days of a report."""

    key: str
    tool: str
    served: int
    refused: int
    first_day: date
    last_at: datetime


@dataclass(frozen=True, slots=True)
class PolicyDay:
    """What a policy's tool rule saw on one day, UTC."""

    day: date
    requests: int
    """With tools."""
    outside: int
    """Those of them that declared a tool outside the list."""


@dataclass(frozen=True, slots=True)
class ToolReport:
    """How a policy's list fits what its keys declare."""

    policy: str
    since: date
    today: date
    """Still going on: it counts only where a tool was outside the list."""
    hits: tuple[ToolHit, ...]
    """Most requests first."""
    days: tuple[PolicyDay, ...]
    """Those with requests, oldest first."""

    @property
    def quiet_days(self) -> int:
        """Whole days up to today without a tool outside the list, from the first with requests."""
        loud = [seen.day for seen in self.days if seen.outside]
        if loud:
            return max(0, (self.today - loud[-1]).days - 1)
        return (self.today - self.days[0].day).days if self.days else 0

    @property
    def quiet_requests(self) -> int:
        """Requests with tools on the quiet days: silence where nobody spoke shows nothing."""
        loud = [seen.day for seen in self.days if seen.outside]
        return _requests(self.days, after=loud[-1] if loud else None)

    @property
    def may_enforce(self) -> bool:
        """Whether the list has fitted everything for long enough to be enforced."""
        return self.quiet_days >= QUIET_DAYS and self.quiet_requests > 0


def _requests(days: Sequence[PolicyDay], *, after: date | None) -> int:
    return sum(seen.requests for seen in days if after is None or seen.day > after)
