"""A patch graded by tests that its author never saw, in a sandbox that its run never touched."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from turnout.core.ids import new_run_id
from turnout.core.runs import TestReport
from turnout.errors import SandboxError, ToolError, UnfitError
from turnout.evals.instances import Instance
from turnout.evals.patches import without_tests
from turnout.sandbox.base import BaseSpec, Limits, RunTests, Sandbox, SandboxDriver
from turnout.sandbox.testrun import USUAL_TESTS, TestPaths, detect_test_command, run_tests

__all__ = ["Grade", "GradeName", "Grader"]

GradeName = Literal["resolved", "unresolved", "no_patch", "does_not_apply", "infrastructure"]
"""infrastructure: we could not grade, which says nothing about the patch."""

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Grade:
    """What the hidden tests say."""

    name: GradeName
    detail: str
    """One sentence for people."""
    dropped: tuple[str, ...] = ()
    """Paths whose changes were left out because they judge the patch."""


class Grader:
    """Grades patches of instances, each in a fresh sandbox at the base commit."""

    def __init__(
        self,
        driver: SandboxDriver,
        limits: Limits,
        *,
        test_timeout: float,
        run_tests: RunTests = run_tests,
        test_paths: TestPaths = USUAL_TESTS,
    ) -> None:
        self._driver = driver
        self._limits = limits
        self._test_timeout = test_timeout
        self._run_tests = run_tests
        self._test_paths = test_paths

    async def grade(self, instance: Instance, base: BaseSpec, diff: bytes) -> Grade:
        """Grade the diff of a run that started from `base`; only cancellation comes out."""
        kept = without_tests(diff, frozenset(instance.hidden_tests), self._test_paths)
        if not kept.diff:
            why = "The patch changes tests only." if kept.dropped else "Nothing was changed."
            return Grade("no_patch", why, kept.dropped)
        try:
            ref = await self._driver.prepare(base)
            sandbox = await self._driver.create(new_run_id(), ref, self._limits)
            try:
                return await self._judge(sandbox, instance, kept.diff, kept.dropped)
            finally:
                await sandbox.close()
        except (SandboxError, UnfitError, ToolError) as error:
            return Grade("infrastructure", str(error), kept.dropped)

    async def _judge(
        self, sandbox: Sandbox, instance: Instance, diff: bytes, dropped: tuple[str, ...]
    ) -> Grade:
        applied = await sandbox.apply_patch(diff)
        if not applied.applied:
            return Grade("does_not_apply", applied.message, dropped)
        if instance.test_patch:
            tests = await sandbox.apply_patch(instance.test_patch.encode())
            if not tests.applied:
                text = f"The hidden tests could not be put in place: {tests.message}"
                return Grade("infrastructure", text, dropped)
        try:
            for path, text in instance.hidden_tests.items():
                await sandbox.write(path, text.encode())
        except ToolError as error:
            return Grade("unresolved", f"The patch is in the way of the tests: {error}", dropped)
        command = instance.test_command or await detect_test_command(sandbox)
        if command is None:
            return Grade("infrastructure", "No command that runs the tests was found.", dropped)
        report = await self._run_tests(sandbox, command, timeout=self._test_timeout)
        fault = _fault(instance, report)
        if fault:
            return Grade("unresolved", fault, dropped)
        return Grade("resolved", f"{len(report.passed)} tests pass.", dropped)


def _fault(instance: Instance, report: TestReport) -> str:
    """Return what keeps a patch from being resolved; empty where nothing does."""
    if report.timed_out:
        return f"The tests did not end within {report.seconds:.0f} s."
    passed = frozenset(report.passed)
    if instance.fail_to_pass:
        missing = [test for test in instance.fail_to_pass if test not in passed]
        lost = [test for test in instance.pass_to_pass if test not in passed]
        if missing:
            return f"{len(missing)} of {len(instance.fail_to_pass)} do not pass: {_some(missing)}."
        return f"{len(lost)} tests are lost: {_some(lost)}." if lost else ""
    if report.failed:
        return f"{len(report.failed)} tests fail: {_some(report.failed)}."
    if not report.ok:
        return f"No test is said to fail, yet the tests ended with status {report.exit_code}."
    unseen = [path for path in instance.hidden_tests if not _has_passed(path, passed)]
    return f"No test of {_some(unseen)} was reported as passed." if unseen else ""


def _has_passed(path: str, passed: frozenset[str]) -> bool:
    return any(test.startswith(f"{path}::") for test in passed)


def _some(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
