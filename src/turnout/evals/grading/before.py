"""What is found out once about an instance in an environment, before any patch of it is judged."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from turnout.core.runs import TestReport
from turnout.errors import ToolError
from turnout.evals.grading.canary import Canary, hatch
from turnout.evals.grading.names import as_called_here, some
from turnout.evals.grading.patches import judging_paths
from turnout.evals.grading.suite import Suite, Way, is_pytest, names_files, put
from turnout.evals.instances.model import Instance
from turnout.sandbox.base import BaseRef, Command, Sandbox
from turnout.sandbox.patches import check_patch
from turnout.sandbox.testrun import detect_test_command

__all__ = ["Before", "Befores"]

_MOST_BYTES = 16 << 20
_CHECK_TIMEOUT = 60.0
_MOST_STANDING = 50


@dataclass(frozen=True, slots=True)
class Before:
    """The tests of an instance and how they end at its base without any fix."""

    fault: str = ""
    """Why nothing can be judged by them, one sentence; empty where it can."""
    failed_before: bool | None = None
    command: str = ""
    way: Way = field(default_factory=Way)
    tests: Mapping[str, bytes | None] = field(default_factory=dict)
    """What is written before the tests run, by path; None: removed."""
    must: tuple[str, ...] = ()
    """Tests that fail and have to pass, as they are called here."""
    keep: tuple[str, ...] = ()
    """Tests that pass and have to go on passing, the same."""
    standing: Mapping[str, bytes] = field(default_factory=dict)
    """Other files of the tests that fail, as they are at the base."""
    passed: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()
    """Also paths of files that could not be collected."""
    seconds: float = 0.0
    """Of the tests by the clock."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """One run of the tests without a fix."""

    way: Way
    report: TestReport
    canary: Canary | None


class Befores:
    """Finds each `Before` once, also where several trials ask at the same time."""

    def __init__(self, suite: Suite) -> None:
        self._suite = suite
        self._known: dict[tuple[str, str], Before] = {}
        self._locks: dict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def of(self, instance: Instance, base: BaseRef) -> Before:
        """Return what is known of an instance on this base; trouble of our own is not kept."""
        key = (instance.digest, base.key)
        async with self._locks[key]:
            if key not in self._known:
                async with self._suite.sandbox(base) as sandbox:
                    self._known[key] = await self._look(sandbox, instance)
            return self._known[key]

    async def _look(self, sandbox: Sandbox, instance: Instance) -> Before:
        try:
            tests = await _material(sandbox, instance)
            await put(sandbox, {path: text.encode() for path, text in instance.extra_files.items()})
            await put(sandbox, tests)
        except ToolError as error:
            return Before(f"The hidden tests could not be put in place: {error}")
        command = instance.test_command or await detect_test_command(sandbox)
        if command is None:
            return Before("No command that runs the tests was found.")
        seen = await self._way(sandbox, instance, command, tests)
        found = _found(instance, command, tests, seen)
        if found.fault and seen.canary is not None:
            # There are tests that mind a file more beside them.
            await put(sandbox, {seen.canary.path: None})
            way = Way(seen.way.plugins, "nowhere")
            report = await self._suite.run(sandbox, command, way)
            again = _found(instance, command, tests, _Seen(way, report, None))
            found = found if again.fault else again
        return replace(found, standing=await _standing(sandbox, instance, found))

    async def _way(
        self, sandbox: Sandbox, instance: Instance, command: str, tests: Mapping[str, bytes | None]
    ) -> _Seen:
        """Find the most guarded way of running the tests that still runs them."""
        plugins = await self._suite.plugins(sandbox, command)
        pytest = is_pytest(command)
        way = Way(plugins, "named" if pytest and names_files(command) else "beside")
        canary = hatch(instance.fail_to_pass, tests)
        report = await self._suite.run(sandbox, command, way, canary)
        if canary is None:
            return _Seen(Way(plugins, "nowhere"), report, None)
        if canary.failed(report) is not None:
            return _Seen(way, report, canary)
        await put(sandbox, {canary.path: None})
        if not (report.passed or report.failed):
            plain = Way(None, "nowhere")
            return _Seen(plain, await self._suite.run(sandbox, command, plain), None)
        if pytest and way.canary == "beside":
            again = hatch(instance.fail_to_pass, tests)
            named = Way(plugins, "named")
            second = await self._suite.run(sandbox, command, named, again)
            same = again is not None and set(report.passed) == set(again.without(second.passed))
            if again is not None and again.failed(second) is not None and same:
                return _Seen(named, second, again)
        return _Seen(Way(plugins, "nowhere"), report, None)


async def _standing(sandbox: Sandbox, instance: Instance, before: Before) -> dict[str, bytes]:
    """Read the files of failing tests that the task does not bring."""
    paths = dict.fromkeys(judging_paths(instance.fail_to_pass or sorted(before.failed)))
    wanted = [path for path in paths if path.endswith(".py") and path not in before.tests]
    texts = [(path, await _whole(sandbox, path)) for path in wanted[:_MOST_STANDING]]
    return {path: text for path, text in texts if text is not None}


def _found(
    instance: Instance, command: str, tests: Mapping[str, bytes | None], seen: _Seen
) -> Before:
    report, canary = seen.report, seen.canary
    passed = frozenset(canary.without(report.passed) if canary else report.passed)
    failed = frozenset(canary.without(report.failed) if canary else report.failed)
    must = instance.fail_to_pass or tuple(sorted(test for test in failed if "::" in test))
    keep = instance.pass_to_pass or tuple(sorted(passed))
    must = as_called_here(must, passed | failed, failed)
    keep = as_called_here(keep, passed | failed, passed)
    failed_before, fault = _soundness(
        instance, replace(report, passed=tuple(passed), failed=tuple(failed)), must, keep
    )
    if canary and canary.failed(report) is False:
        fault = "A test that must fail was not reported as failed, without any fix."
    return Before(
        fault,
        failed_before,
        command,
        seen.way,
        tests,
        must=must,
        keep=keep,
        passed=passed,
        failed=failed,
        seconds=report.seconds,
    )


async def _material(sandbox: Sandbox, instance: Instance) -> dict[str, bytes | None]:
    """Return the files of the tests, those of a patch as they are once it is applied."""
    found: dict[str, bytes | None] = {}
    if instance.test_patch:
        patch = instance.test_patch.encode()
        applied = await sandbox.apply_patch(patch)
        if not applied.applied and not await _is_there(sandbox, patch):
            raise ToolError(applied.message)
        for path in check_patch(patch):
            found[path] = await _whole(sandbox, path)
    for path, text in instance.hidden_tests.items():
        found[path] = None if text is None else text.encode()
    return found


async def _is_there(sandbox: Sandbox, patch: bytes) -> bool:
    """Say whether the base holds the tests already, as it does where the agent may see them."""
    argv = ("git", "apply", "--check", "--reverse", "-")
    return (await sandbox.run(Command(argv, stdin=patch, timeout=_CHECK_TIMEOUT))).ok


async def _whole(sandbox: Sandbox, path: str) -> bytes | None:
    """Return a file; None where there is none."""
    try:
        blob = await sandbox.read(path, limit=_MOST_BYTES)
    except ToolError:
        return None
    if blob.size > len(blob.data):
        raise ToolError(f"{path} is larger than 16 MiB.")
    return blob.data


def _soundness(
    instance: Instance, report: TestReport, must: Sequence[str], keep: Sequence[str]
) -> tuple[bool | None, str]:
    """Return whether the right tests fail, and what makes the instance unfit to judge."""
    passed, heard = frozenset(report.passed), bool(report.passed or report.failed)
    if report.timed_out:
        return None, f"Without any fix the tests do not end within {report.seconds:.0f} s."
    if not report.found:
        return None, "No tests were found."
    if not instance.fail_to_pass:
        fails = bool(report.failed) if heard else report.exit_code != 0
        return fails, "" if fails else "The tests pass without any fix."
    if not heard:
        return None, "The runner reported no single test, so those that must pass are unknown."
    passing = [test for test in must if test in passed]
    if passing:
        return False, f"Without any fix these pass: {some(passing)}."
    lost = [test for test in keep if test not in passed]
    if lost:
        return True, f"Without any fix these do not pass, but should: {some(lost)}."
    return True, ""
