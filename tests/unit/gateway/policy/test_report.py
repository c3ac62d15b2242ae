"""From a dry run to an enforced list."""

from datetime import UTC, date, datetime

import pytest

from turnout.core.govern.toolwatch import PolicyDay, ToolHit, ToolReport
from turnout.core.policies import Policy, ToolRule
from turnout.gateway.catalog import Catalog
from turnout.gateway.policy.desk import PolicyDesk
from turnout.gateway.policy.report import PolicyReport, report_on
from turnout.testing.clock import FrozenClock
from turnout.testing.stores import MemoryPoliciesStore

TODAY = date(2026, 1, 31)
HIT = ToolHit("k", "shell", 3, 0, date(2026, 1, 20), datetime(2026, 1, 20, tzinfo=UTC))


class Reports:
    """Returns what it is asked for."""

    async def report(self, policy: str, *, since: date, today: date) -> ToolReport:
        """Return an empty report."""
        return ToolReport(policy, since, today, (), ())


def report(mode, *days: PolicyDay) -> PolicyReport:
    """Return a report of those days."""
    return PolicyReport(ToolReport("team", date(2026, 1, 1), TODAY, (HIT,), days), mode)


LOUD = PolicyDay(date(2026, 1, 20), 5, 3)


@pytest.mark.parametrize(
    ("mode", "days", "said"),
    [
        (
            "dry_run",
            [LOUD, PolicyDay(date(2026, 1, 25), 9, 0)],
            "10 quiet days with 9 requests: set `mode",
        ),
        (
            "dry_run",
            [PolicyDay(date(2026, 1, 28), 9, 1), PolicyDay(date(2026, 1, 30), 1, 0)],
            "2 of 7 quiet days",
        ),
        ("dry_run", [LOUD], "No request declared a tool lately"),
        ("dry_run", [], "0 of 7 quiet days"),
        ("enforce", [LOUD], "The list is enforced"),
        ("any", [LOUD], "The policy has no list"),
    ],
)
def test_a_report_says_what_to_do(mode, days, said: str) -> None:
    """Seven quiet days in which requests came suggest to enforce the list."""
    assert said in report(mode, *days).suggestion


async def test_a_report_is_of_the_policy_in_force() -> None:
    """And of the days that were asked for."""
    own = [Policy(name="team", tools=ToolRule("dry_run", ("a",)))]
    desk = PolicyDesk(MemoryPoliciesStore(), Catalog(), FrozenClock(), own=own)
    made = await report_on(desk, Reports(), "team", days=10, clock=FrozenClock())
    assert (made.mode, made.tools.since) == ("dry_run", date(2025, 12, 22))
