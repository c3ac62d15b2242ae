"""Whether a fix is one: its tests fail before it, pass with it, and it breaks no other."""

import re
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import median
from typing import Final

from turnout.core.ids import new_run_id
from turnout.core.runs import TestReport
from turnout.errors import RepositoryError, SandboxUnavailableError, ToolError, UnfitError
from turnout.evals.instances.model import Instance
from turnout.evals.mine.reasons import Dropped
from turnout.sandbox.base import BaseSpec, Command, Limits, RunTests, Sandbox, SandboxDriver
from turnout.sandbox.testrun import run_tests

__all__ = ["Glance", "Proof", "Prover"]

_QUICK: Final = 30.0
_SHOWN: Final = 300
_SLACK: Final = 4.0
"""A busy machine is no reason to call a fix slow."""
_OUT_OF_TIME: Final = 128 + signal.SIGXCPU
"""What the shell says of a process that has used up its CPU time."""
_NEW_NAME: Final = re.compile(
    r"ImportError|ModuleNotFoundError|NameError|fixture '[^']*' not found"
    r"|AttributeError: .*has no attribute"
    r"|TypeError: .*(?:unexpected keyword argument|takes .* arguments?|missing \d+ required)"
)
_ALL_FILES: Final = " --continue-on-collection-errors"


@dataclass(frozen=True, slots=True)
class Glance:
    """What the changed test files show, run once before the fix and once with it."""

    fail_to_pass: tuple[str, ...]
    errors: Mapping[str, str]
    """What tests fail with before the fix, as far as it is known."""

    @property
    def asks_for_names(self) -> bool:
        """Whether all that fails before is that something is not there yet."""
        known = [self.errors[test] for test in self.fail_to_pass if test in self.errors]
        return bool(known) and all(_NEW_NAME.search(error) for error in known)


@dataclass(frozen=True, slots=True)
class Proof:
    """What the whole suite shows, run several times before the fix and with it."""

    fail_to_pass: tuple[str, ...]
    """Failed every time before, and passed every time with it."""
    pass_to_pass: tuple[str, ...]
    """Passed every time."""
    command: str
    seconds: float
    """Median of one run of the suite."""


class Prover:
    """Runs the tests of fixes, each time in a fresh sandbox without network."""

    def __init__(
        self,
        driver: SandboxDriver,
        limits: Limits,
        *,
        seconds: float,
        times: int = 3,
        run_tests: RunTests = run_tests,
    ) -> None:
        self._driver = driver
        self._limits = limits
        self._seconds = seconds
        """CPU time of one process of the tests; by the clock a run may take some times that."""
        self._times = times
        self._run_tests = run_tests

    async def glance(self, fix: Instance, command: str) -> Glance | Dropped:
        """Run the changed test files by `command` once without the fix, then with it."""
        try:
            async with self._at_base(fix) as sandbox:
                await _put_tests(sandbox, fix)
                before = await self._run(sandbox, _telling(command))
                await _put_fix(sandbox, fix)
                after = await self._run(sandbox, command)
        except _UnprovableError as error:
            return error.dropped
        return _glanced(before, after)

    async def prove(self, fix: Instance) -> Proof | Dropped:
        """Run the whole suite with another hash seed each time, before the fix and with it."""
        command = fix.test_command or ""
        pairs: list[tuple[TestReport, TestReport]] = []
        try:
            for seed in range(self._times):
                before = await self._once(fix, command, seed, fixed=False)
                if not pairs and _interrupted(before, command):
                    command += _ALL_FILES
                    before = await self._once(fix, command, seed, fixed=False)
                after = await self._once(fix, command, seed, fixed=True)
                pairs.append((before, after))
                if dropped := _refuted(pairs, last=seed == self._times - 1):
                    return dropped
        except _UnprovableError as error:
            return error.dropped
        return _proved(pairs, command)

    async def _once(self, fix: Instance, command: str, seed: int, *, fixed: bool) -> TestReport:
        async with self._at_base(fix) as sandbox:
            if fixed:
                await _put_fix(sandbox, fix)
            await _put_tests(sandbox, fix)
            return await self._run(sandbox, f"export PYTHONHASHSEED={seed}\n{command}")

    async def _run(self, sandbox: Sandbox, command: str) -> TestReport:
        most = max(1, round(self._seconds))
        limited = f"ulimit -S -t {most} 2>/dev/null\n{command}\nexit $?"
        report = await self._run_tests(sandbox, limited, timeout=_SLACK * self._seconds)
        if report.timed_out or report.exit_code == _OUT_OF_TIME:
            raise _UnprovableError(Dropped("slow", f"over {self._seconds:.0f} s"))
        return report

    @asynccontextmanager
    async def _at_base(self, fix: Instance) -> AsyncIterator[Sandbox]:
        spec = BaseSpec(fix.repository, fix.base_commit, fix.requirements, setup=fix.setup)
        try:
            base = await self._driver.prepare(spec)
        except SandboxUnavailableError:
            raise
        except (RepositoryError, UnfitError) as error:
            raise _UnprovableError(Dropped("unprepared", error.message[:_SHOWN])) from None
        sandbox = await self._driver.create(new_run_id(), base, self._limits)
        try:
            for path, text in fix.extra_files.items():
                await sandbox.write(path, text.encode())
            yield sandbox
        except ToolError as error:
            raise _UnprovableError(Dropped("unprepared", error.message[:_SHOWN])) from None
        finally:
            await sandbox.close()


class _UnprovableError(Exception):
    """The tests of a fix say nothing."""

    def __init__(self, dropped: Dropped) -> None:
        super().__init__(dropped.reason)
        self.dropped = dropped


async def _put_fix(sandbox: Sandbox, fix: Instance) -> None:
    done = await sandbox.apply_patch(fix.patch.encode())
    if not done.applied:
        raise _UnprovableError(Dropped("unprepared", done.message[:_SHOWN]))


async def _put_tests(sandbox: Sandbox, fix: Instance) -> None:
    if fix.test_patch:
        done = await sandbox.apply_patch(fix.test_patch.encode())
        if not done.applied:
            raise _UnprovableError(Dropped("unprepared", done.message[:_SHOWN]))
    gone = [path for path, text in fix.hidden_tests.items() if text is None]
    if gone:
        await sandbox.run(Command(("rm", "-f", "--", *gone), timeout=_QUICK))
    for path, text in fix.hidden_tests.items():
        if text is not None:
            await sandbox.write(path, text.encode())


def _telling(command: str) -> str:
    """Return a command of pytest's so that each failure is told on one line that is not cut."""
    if "pytest" not in command:
        return command
    return f"export COLUMNS=400\n{command} --tb=no -rfE"


def _glanced(before: TestReport, after: TestReport) -> Glance | Dropped:
    was_passed = frozenset(before.passed)
    mended = tuple(test for test in after.passed if test not in was_passed)
    broken = [name for name in before.failed if "::" not in name]
    if not _ran(after):
        return Dropped("not_runnable", _last_words(after))
    if broken and not any(name in after.failed for name in broken):
        return Dropped("not_collected", ", ".join(broken)[:_SHOWN])
    if mended:
        return Glance(mended, _errors(mended, before.output))
    return Dropped("not_mended" if before.failed else "nothing_fails")


def _ran(report: TestReport) -> bool:
    """Say whether any test came to run, however it ended."""
    return bool(report.passed) or any("::" in name for name in report.failed)


def _errors(tests: Sequence[str], output: str) -> Mapping[str, str]:
    """Find what known tests have failed with in pytest's summary."""
    found: dict[str, str] = {}
    for line in output.split("\n"):
        for test in tests:
            for word in ("FAILED", "ERROR"):
                if line.startswith(f"{word} {test} - "):
                    found[test] = line[len(f"{word} {test} - ") :].strip()[:_SHOWN]
    return found


def _interrupted(report: TestReport, command: str) -> bool:
    """Say whether files that cannot be collected kept pytest from running any other."""
    uncollected = any("::" not in name for name in report.failed)
    return uncollected and not report.passed and "pytest" in command


def _refuted(pairs: Sequence[tuple[TestReport, TestReport]], *, last: bool) -> Dropped | None:
    """Say why the runs so far show no fix; one run of other tests may be chance."""
    before, after = pairs[-1]
    if not _ran(after):
        return Dropped("not_runnable", _last_words(after))
    lost = _lost(pairs)
    if lost and (last or len(pairs) > 1):
        return Dropped("breaks_tests", ", ".join(lost[:3])[:_SHOWN])
    if _mended(pairs):
        return None
    if _mended(pairs[:1]):
        return Dropped("flaky")
    return Dropped("not_mended" if before.failed else "nothing_fails")


def _lost(pairs: Sequence[tuple[TestReport, TestReport]]) -> tuple[str, ...]:
    passed = frozenset(pairs[0][0].passed).intersection(*(before.passed for before, _ in pairs))
    failed = frozenset(pairs[0][1].failed).intersection(*(after.failed for _, after in pairs))
    return tuple(test for test in pairs[0][0].passed if test in passed & failed)


def _mended(pairs: Sequence[tuple[TestReport, TestReport]]) -> tuple[str, ...]:
    passed = frozenset[str]().union(*(before.passed for before, _ in pairs))
    always = frozenset(pairs[0][1].passed).intersection(*(after.passed for _, after in pairs))
    return tuple(test for test in pairs[0][1].passed if test in always - passed)


def _proved(pairs: Sequence[tuple[TestReport, TestReport]], command: str) -> Proof:
    reports = [report for pair in pairs for report in pair]
    always = frozenset(reports[0].passed).intersection(*(each.passed for each in reports))
    kept = tuple(test for test in reports[0].passed if test in always)
    return Proof(_mended(pairs), kept, command, median(each.seconds for each in reports))


def _last_words(report: TestReport) -> str:
    lines = [line.strip() for line in report.output.splitlines() if line.strip()]
    return lines[-1][:_SHOWN] if lines else f"exit status {report.exit_code}"
