"""The tests as the judge of a candidate."""

import shlex
from dataclasses import dataclass

from turnout.core.clock import Deadline
from turnout.core.runs import TestReport
from turnout.errors import ToolError
from turnout.sandbox.base import RunTests, Sandbox

__all__ = ["Judge", "Judgement"]

_MAX_SELECTED = 20
_MAX_TOLD = 3
_SLACK_SECONDS = 20.0
_LEAST_SECONDS = 1.0
"""So that what a candidate has changed is judged, and taken back, also when time is over."""
_SLACK_FACTOR = 10.0


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the tests say of a candidate."""

    passed: bool
    """True where the whole suite passes."""
    text: str
    """One sentence for people."""
    progress: TestReport | None = None
    """Of the whole suite, where fewer tests fail than before and all pass that passed."""
    cut: bool = False
    """Whether all that failed passes, and the run's time was over before the suite had ended."""
    lost: tuple[str, ...] = ()
    """Where all that failed passes: tests that passed before and do not now."""

    @property
    def stays(self) -> bool:
        """Whether the candidate is kept."""
        return self.passed or self.progress is not None or self.cut


class Judge:
    """Runs the tests that fail at base first, and all of them only where those pass."""

    def __init__(
        self,
        run: RunTests,
        sandbox: Sandbox,
        command: str,
        before: TestReport,
        timeout: float,
        deadline: Deadline,
    ) -> None:
        self._run_tests = run
        self._sandbox = sandbox
        self._command = command
        self._before = frozenset(before.failed)
        self._passed = frozenset(before.passed)
        failed = before.failed[: _MAX_SELECTED + 1]
        self._selector = shlex.join(failed) if len(failed) <= _MAX_SELECTED else ""
        usual = timeout if before.timed_out else before.seconds
        self._timeout = min(timeout, _SLACK_SECONDS + _SLACK_FACTOR * usual)
        self._deadline = deadline
        self._fragile: tuple[str, ...] = ()
        """Tests that candidates have broken, and that pass by themselves without these."""
        self._broken: list[str] = []
        """Those of which that is not yet known."""

    async def judge(self) -> Judgement:
        """Judge the workspace as it is now.

        What an earlier candidate has broken is run with the tests that fail at base: the next one
        often breaks the same, and that is sooner seen than in the whole suite.
        """
        first = await self._chosen_tests()
        passed = frozenset(first.passed) if first is not None else frozenset[str]()
        mends_all = first is not None and self._before <= passed
        if first is not None and not first.ok:
            if not self._before & passed:
                return Judgement(False, f"The failing tests still fail: {_counts(first)}.")
            broken = tuple(name for name in self._fragile if name not in passed)
            if broken:
                told = f"What passed before fails: {', '.join(broken[:_MAX_TOLD])}."
                return Judgement(False, told, lost=broken if mends_all else ())
        report = await self._run("")
        if report.ok:
            return Judgement(True, f"All tests pass: {_counts(report)}.")
        if mends_all and report.timed_out and self._deadline.left == 0:
            told = "What failed passes; the time of the run was over before the whole suite was."
            return Judgement(False, told, cut=True)
        if self._is_progress(report):
            return Judgement(False, f"Fewer tests fail: {_counts(report)}.", report)
        lost = () if report.timed_out else sorted(self._passed - frozenset(report.passed))
        room = _MAX_SELECTED - len(self._fragile)
        self._broken = [name for name in lost if name not in self._fragile][:room]
        told = f"The whole suite does not pass: {_counts(report)}."
        return Judgement(False, told, lost=tuple(lost[:_MAX_SELECTED]) if mends_all else ())

    async def settle(self) -> None:
        """Note, in a workspace as it was, which of the tests just broken pass by themselves."""
        broken, self._broken = self._broken, []
        if not broken or not self._selector:
            return
        try:
            alone = await self._run(shlex.join(broken))
        except ToolError:
            return
        self._fragile += tuple(name for name in broken if name in alone.passed)

    def _is_progress(self, report: TestReport) -> bool:
        """Say so of a suite that came to its end; one cut short has not yet failed."""
        passed = frozenset(report.passed)
        ended = report.exit_code is not None and not report.timed_out
        fewer = frozenset(report.failed) < self._before and self._before & passed
        return bool(ended and fewer and self._passed <= passed)

    async def _chosen_tests(self) -> TestReport | None:
        """Run what failed at base and what was broken; None where single tests cannot be run."""
        if not self._selector:
            return None
        try:
            return await self._run(f"{self._selector} {shlex.join(self._fragile)}".strip())
        except ToolError:
            self._selector = ""
            return None

    async def _run(self, selector: str) -> TestReport:
        timeout = max(_LEAST_SECONDS, self._deadline.within(self._timeout))
        return await self._run_tests(
            self._sandbox, self._command, selector=selector, timeout=timeout
        )


def _counts(report: TestReport) -> str:
    if report.timed_out:
        return f"timed out after {report.seconds:.0f} s"
    ended = "killed" if report.exit_code is None else f"exit status {report.exit_code}"
    if not (report.passed or report.failed):
        return ended
    counted = f"{len(report.failed)} failed, {len(report.passed)} passed"
    # Where no test is said to fail, something else is wrong with how they ended.
    return counted if report.failed or report.ok else f"{counted}, {ended}"
