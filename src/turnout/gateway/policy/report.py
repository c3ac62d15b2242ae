"""How a policy's tool list fits what its keys declare, and whether to enforce it."""

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Protocol, assert_never

from turnout.core.clock import Clock
from turnout.core.govern.toolwatch import QUIET_DAYS, ToolReport
from turnout.core.policies import ToolMode
from turnout.gateway.policy.desk import PolicyDesk

__all__ = ["PolicyReport", "ToolReports", "report_on"]


class ToolReports(Protocol):
    """What keys declared, day by day."""

    async def report(self, policy: str, *, since: date, today: date) -> ToolReport:
        """Return how a policy's list fits what was declared from `since` to `today`."""
        ...


@dataclass(frozen=True, slots=True)
class PolicyReport:
    """What was outside a policy's list, and what to make of it."""

    tools: ToolReport
    mode: ToolMode

    @property
    def suggestion(self) -> str:
        """One sentence on what to do."""
        seen = self.tools
        match self.mode:
            case "any":
                return (
                    'The policy has no list; set one with `mode = "dry_run"` to see what it misses.'
                )
            case "enforce":
                return "The list is enforced: what is outside of it is refused."
            case "dry_run" if seen.may_enforce:
                return (
                    f"{seen.quiet_days} quiet days with {seen.quiet_requests} requests: "
                    'set `mode = "enforce"`.'
                )
            case "dry_run" if seen.quiet_days and not seen.quiet_requests:
                return "No request declared a tool lately; silence shows nothing yet."
            case "dry_run":
                early = f"{seen.quiet_days} of {QUIET_DAYS} quiet days: too early to enforce it."
                return f"{early}{_since(seen)}"
            case _:
                assert_never(self.mode)


def _since(seen: ToolReport) -> str:
    """Return since when quiet days are counted; nothing where there was no request with tools."""
    loud = [day.day for day in seen.days if day.outside]
    if loud:
        return f" The last request with a tool outside of it was on {loud[-1]} (UTC)."
    return f" They count from {seen.days[0].day}, the first with tools." if seen.days else ""


async def report_on(
    desk: PolicyDesk, reports: ToolReports, name: str, *, days: int, clock: Clock
) -> PolicyReport:
    """Return the report of the last `days`; `NotFoundError` where there is no such policy."""
    policy = await desk.in_force(name)
    today = clock.now().date()
    seen = await reports.report(name, since=today - timedelta(days=days), today=today)
    return PolicyReport(seen, policy.tools.mode)
