"""What the tests say of a candidate, in words."""

from typing import Any

import pytest

from turnout.agent.repair.judge import Judge
from turnout.core.clock import Deadline
from turnout.core.runs import TestReport
from turnout.testing.clock import FrozenClock

BEFORE = TestReport("pytest", 1, ("t.py::a",), ("t.py::b",), 1.0, "")


async def said(report: TestReport) -> str:
    """Return what is said of a candidate whose tests end so."""

    async def run(sandbox: Any, command: str, *, selector: str = "", timeout: float) -> TestReport:
        return report

    sandbox: Any = None
    judge = Judge(run, sandbox, "pytest", BEFORE, 10.0, Deadline(FrozenClock(), None))
    return (await judge.judge()).text


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
