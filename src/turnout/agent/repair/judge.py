"""The tests as the judge of a candidate."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from turnout.core.clock import Deadline
from turnout.core.runs import TestReport
from turnout.errors import ToolError
from turnout.sandbox.base import RunTests, Sandbox

__all__ = ["Judge", "Judgement"]

_MAX_SELECTED = 20
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

    async def judge(self, lost: Sequence[str] = ()) -> Judgement:
        """Judge the workspace as it is now; `lost` tests have to pass like those that fail."""
        first = await self._failing_tests(lost)
        hopeless = lost or (first and not self._before & set(first.passed))
        if first is not None and not first.ok and hopeless:
            return Judgement(False, f"The failing tests still fail: {_counts(first)}.")
        report = await self._run("")
        if report.ok:
            return Judgement(True, f"All tests pass: {_counts(report)}.")
        if first is not None and first.ok and report.timed_out and self._deadline.left == 0:
            told = "What failed passes; the time of the run was over before the whole suite was."
            return Judgement(False, told, cut=True)
        if self._is_progress(report):
            return Judgement(False, f"Fewer tests fail: {_counts(report)}.", report)
        gone: frozenset[str] = frozenset()
        if first is not None and first.ok and not report.timed_out:
            gone = self._passed - frozenset(report.passed)
        told = f"The whole suite does not pass: {_counts(report)}."
        return Judgement(False, told, lost=tuple(sorted(gone)[:_MAX_SELECTED]))

    def _is_progress(self, report: TestReport) -> bool:
        """Say so of a suite that came to its end; one cut short has not yet failed."""
        passed = frozenset(report.passed)
        ended = report.exit_code is not None and not report.timed_out
        fewer = frozenset(report.failed) < self._before and self._before & passed
        return bool(ended and fewer and self._passed <= passed)

    async def _failing_tests(self, lost: Sequence[str]) -> TestReport | None:
        """Run what failed at base, and `lost`; None where single tests cannot be run."""
        if not self._selector:
            return None
        try:
            return await self._run(f"{self._selector} {shlex.join(lost)}".strip())
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
