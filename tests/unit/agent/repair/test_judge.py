"""What the tests say of a candidate, in words."""

from dataclasses import replace
from typing import Any

import pytest

from turnout.agent.repair.judge import Judge, Judgement
from turnout.core.clock import Deadline
from turnout.core.runs import TestReport
from turnout.testing.clock import FrozenClock

BEFORE = TestReport("pytest", 1, ("t.py::a",), ("t.py::b",), 1.0, "")


TWO_FAIL = TestReport("pytest", 1, ("t.py::a",), ("t.py::b", "t.py::c"), 1.0, "")


async def judged(
    *reports: TestReport, before: TestReport = BEFORE, left: float | None = None
) -> Judgement:
    """Return what is made of a candidate whose runs of tests end so, the last one for good."""
    ends = list(reports)

    async def run(sandbox: Any, command: str, *, selector: str = "", timeout: float) -> TestReport:
        return ends.pop(0) if len(ends) > 1 else ends[0]

    sandbox: Any = None
    clock = FrozenClock()
    at = None if left is None else clock.monotonic() + left
    return await Judge(run, sandbox, "pytest", before, 10.0, Deadline(clock, at)).judge()


async def said(report: TestReport) -> str:
    """Return what is said of a candidate whose tests end so."""
    return (await judged(report)).text


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (TestReport("pytest", 1, ("t.py::a",), ("t.py::b",), 1.0, ""), "1 failed, 1 passed."),
        (TestReport("pytest", None, ("t.py::a",), (), 1.0, ""), "0 failed, 1 passed, killed."),
        (TestReport("pytest", 3, ("t.py::a",), (), 1.0, ""), "0 failed, 1 passed, exit status 3."),
        (TestReport("pytest", None, (), (), 1.0, ""), "killed."),
        (TestReport("pytest", None, (), (), 9.6, "", timed_out=True), "timed out after 10 s."),
    ],
)
async def test_what_keeps_a_candidate_from_passing_is_named(report: TestReport, words: str) -> None:
    """Also where no test is said to fail."""
    assert await said(report) == f"The failing tests still fail: {words}"


async def test_fewer_failures_count_where_the_suite_ended_and_nothing_was_lost() -> None:
    """A suite that was cut short has not failed yet, and a test that is gone does not pass."""
    some = TestReport("pytest", 1, ("t.py::a", "t.py::b"), ("t.py::c",), 1.0, "")
    assert (await judged(some, before=TWO_FAIL)).progress == some
    for other in (
        replace(some, exit_code=None),
        replace(some, timed_out=True, exit_code=None),
        replace(some, passed=("t.py::b",)),
    ):
        assert (await judged(some, other, before=TWO_FAIL)).progress is None


async def test_what_failed_and_passes_when_time_is_over_is_told_apart() -> None:
    """The verdict runs the whole suite once more, so that such a candidate may stay."""
    passes = TestReport("pytest", 0, ("t.py::b",), (), 1.0, "")
    late = TestReport("pytest", None, (), (), 1.0, "", timed_out=True)
    over = await judged(passes, late, left=0.0)
    assert (over.passed, over.cut, over.progress) == (False, True, None)
    for other in (await judged(passes, late, left=9.0), await judged(late, late, left=0.0)):
        assert not other.cut
