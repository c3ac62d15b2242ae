"""When a list has fitted for long enough."""

from datetime import date, timedelta

import pytest

from turnout.core.govern.toolwatch import PolicyDay, ToolReport

TODAY = date(2026, 1, 31)


def report(*days):
    """Return a report; each day is how long ago, requests, and requests outside the list."""
    seen = [PolicyDay(TODAY - timedelta(days=ago), n, outside) for ago, n, outside in days]
    return ToolReport("default", date(2026, 1, 1), TODAY, (), tuple(seen))


@pytest.mark.parametrize(
    ("days", "quiet"),
    [
        ([], 0),
        ([(0, 5, 0)], 0),
        ([(0, 5, 1)], 0),
        ([(1, 5, 1)], 0),
        ([(2, 5, 1)], 1),
        ([(8, 5, 1), (3, 9, 0)], 7),
        ([(20, 5, 1), (8, 1, 1), (0, 9, 0)], 7),
        ([(7, 5, 0)], 7),
        ([(9, 5, 0), (0, 3, 3)], 0),
    ],
)
def test_quiet_days_are_whole_days_since_the_last_tool_outside_the_list(days, quiet):
    """Or since the first request with tools, where there never was one; today is not over."""
    assert report(*days).quiet_days == quiet


def test_seven_quiet_days_suggest_to_enforce():
    """Not six."""
    assert report((8, 5, 1), (3, 9, 0)).may_enforce
    assert not report((7, 5, 1), (3, 9, 0)).may_enforce


def test_days_on_which_nobody_sent_a_tool_suggest_nothing():
    """Silence where nobody spoke is no fit."""
    quiet = report((20, 5, 1))
    assert (quiet.quiet_days, quiet.quiet_requests, quiet.may_enforce) == (19, 0, False)
