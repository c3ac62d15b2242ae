"""What is found out once about an instance in an environment, before any patch of it is judged."""

import asyncio
import re
import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from pydantic import with_config

from turnout.core.runs import TestReport
from turnout.errors import ToolError
from turnout.evals.grading.canary import Canary, hatch
from turnout.evals.grading.names import as_called_here, some
from turnout.evals.grading.patches import judging_paths, sources_among
from turnout.evals.grading.suite import (
    Suite,
    Way,
    is_pytest,
    names_files,
    names_nothing,
    put,
)
from turnout.evals.instances.model import Instance
from turnout.sandbox.base import BaseRef, Command, Sandbox
from turnout.sandbox.patches import check_patch
from turnout.sandbox.testrun import detect_test_command

__all__ = ["Before", "Befores", "KeepsBefores", "path_of"]

_MOST_BYTES = 16 << 20
_CHECK_TIMEOUT = 60.0
_MOST_STANDING = 50
_MOST_LISTED = 100_000


# Files of tests are bytes of any kind, which JSON has no other form for.
@with_config(ser_json_bytes="base64", val_json_bytes="base64")
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
    named: bool = False
    """Whether all that must pass is known by name: the task says so, or its known fix shows it.

    Else all tests of the files of the task must.
    """
    must: tuple[str, ...] = ()
    """Tests that fail and have to pass, as they are called here."""
    keep: tuple[str, ...] = ()
    """Tests that pass and have to go on passing, the same."""
    standing: Mapping[str, bytes] = field(default_factory=dict)
    """Other files of the tests that fail, as they are at the base."""
    passed: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()
    """Also paths of files that could not be collected."""
    sources: frozenset[str] = frozenset()
    """Files at the base that are called as tests are and are none."""
    seconds: float = 0.0
    """Of the tests by the clock."""

    @property
    def judging(self) -> tuple[str, ...]:
        """Files whose tests judge: those of the task, else those of which a test fails."""
        heard = {path_of(test) for test in (*self.passed, *self.failed)}
        own = tuple(path for path in self.tests if path in heard)
        return own or tuple(dict.fromkeys(map(path_of, sorted(self.failed))))


@dataclass(frozen=True, slots=True)
class _Seen:
    """One run of the tests without a fix."""

    way: Way
    report: TestReport
    canary: Canary | None

    @property
    def names(self) -> frozenset[str]:
        """Other tests that were heard of."""
        names = (*self.report.passed, *self.report.failed)
        return frozenset(self.canary.without(names) if self.canary else names)


class KeepsBefores(Protocol):
    """Keeps what was found for whoever asks after this process."""

    def load(self, instance: Instance, base_key: str) -> Before | None:
        """Return what is kept; None where nothing is."""
        ...

    def save(self, instance: Instance, base_key: str, before: Before) -> None:
        """Keep what was found, as far as it is worth it."""
        ...


class Befores:
    """Finds each `Before` once, also where several trials ask at the same time."""

    def __init__(self, suite: Suite, keeper: KeepsBefores | None = None) -> None:
        self._suite = suite
        self._keeper = keeper
        self._known: dict[tuple[str, str], Before] = {}
        self._locks: dict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def of(self, instance: Instance, base: BaseRef) -> Before:
        """Return what is known of an instance on this base; trouble of our own is not kept."""
        key = (instance.digest, base.key)
        async with self._locks[key]:
            if key not in self._known:
                self._known[key] = await self._found(instance, base)
            return self._known[key]

    async def _found(self, instance: Instance, base: BaseRef) -> Before:
        kept = self._keeper.load(instance, base.key) if self._keeper is not None else None
        if kept is not None:
            return kept
        async with self._suite.sandbox(base) as sandbox:
            found = await self._look(sandbox, instance)
        if instance.patch and not (found.fault or found.named):
            async with self._suite.sandbox(base) as sandbox:
                found = await self._with_fix(sandbox, instance, found)
        if self._keeper is not None:
            self._keeper.save(instance, base.key, found)
        return found

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
        files = [path for path in tests if path.endswith(".py") and tests[path] is not None]
        if files and not seen.names and not is_pytest(command):
            # A runner that names no test can be talked into any status.
            command = f"python -m pytest {shlex.join(files)}"
            seen = await self._way(sandbox, instance, command, tests)
        found = _found(instance, command, tests, seen)
        if found.fault and seen.canary is not None:
            # There are tests that mind a file more beside them.
            await put(sandbox, {seen.canary.path: None})
            way = replace(seen.way, canary="nowhere")
            report = await self._suite.run(sandbox, command, way)
            again = _found(instance, command, tests, _Seen(way, report, None))
            found = found if again.fault else again
        listed = (await sandbox.list(limit=_MOST_LISTED)).paths
        heard = {path_of(test) for test in (*found.passed, *found.failed)}
        return replace(
            found,
            standing=await _standing(sandbox, instance, found),
            sources=sources_among(listed, heard.union(tests), self._suite.test_paths),
        )

    async def _with_fix(self, sandbox: Sandbox, instance: Instance, before: Before) -> Before:
        """Find out by the known fix what must pass; what does not apply shows nothing."""
        await put(sandbox, {path: text.encode() for path, text in instance.extra_files.items()})
        if not (await sandbox.apply_patch(instance.patch.encode())).applied:
            return before
        await put(sandbox, before.tests)
        canary = hatch((), before.tests) if before.way.canary != "nowhere" else None
        report = await self._suite.run(sandbox, before.command, before.way, canary)
        passed = frozenset(canary.without(report.passed) if canary else report.passed)
        must = tuple(sorted(passed - before.passed))
        if not must:
            fault = "With the known fix no test passes that does not pass without it."
            return replace(before, fault=fault)
        lost = [test for test in before.keep if test not in passed]
        keep = tuple(test for test in before.keep if test not in lost)
        return replace(before, named=True, must=must, keep=keep)

    async def _way(
        self, sandbox: Sandbox, instance: Instance, command: str, tests: Mapping[str, bytes | None]
    ) -> _Seen:
        """Find the most guarded way of running the tests that still runs them."""
        found = await self._suite.plugins(sandbox, command)
        plugins = tuple(name for name, _ in found)
        modules = tuple(sorted({re.split(r"[.:]", value)[0] for _, value in found}))
        pytest = is_pytest(command)
        way = Way(plugins, "named" if pytest and names_files(command) else "beside", modules)
        canary = hatch(instance.fail_to_pass, tests)
        report = await self._suite.run(sandbox, command, way, canary)
        if canary is None:
            return _Seen(replace(way, canary="nowhere"), report, None)
        first = _Seen(way, report, canary)
        if canary.failed(report) is not None:
            return first
        await put(sandbox, {canary.path: None})
        if not first.names:
            plain = Way(None, "nowhere", modules)
            bare = _Seen(plain, await self._suite.run(sandbox, command, plain), None)
            return bare if bare.names else _Seen(replace(way, canary="nowhere"), report, None)
        if pytest and way.canary == "beside" and not names_nothing(command):
            named = replace(way, canary="named")
            again = hatch(instance.fail_to_pass, tests)
            second = _Seen(named, await self._suite.run(sandbox, command, named, again), again)
            heard = again is not None and again.failed(second.report) is not None
            if heard and _ends(second) == _ends(first):
                return second
        return _Seen(replace(way, canary="nowhere"), report, None)


def path_of(test: str) -> str:
    """Return the file of a test, or of what could not be collected."""
    return test.partition("::")[0]


def _ends(seen: _Seen) -> tuple[frozenset[str], frozenset[str]]:
    return seen.names.intersection(seen.report.passed), seen.names.intersection(seen.report.failed)


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
    own = {path_of(test) for test in passed | failed}.intersection(tests)
    # What fails elsewhere with or without a fix is no matter of this task.
    failing = sorted(test for test in failed if not own or path_of(test) in own)
    must = instance.fail_to_pass or tuple(test for test in failing if "::" in test)
    keep = instance.pass_to_pass or tuple(sorted(passed))
    must = as_called_here(must, passed | failed, failed)
    keep = as_called_here(keep, passed | failed, passed)
    heard = replace(report, passed=tuple(passed), failed=tuple(failed))
    failed_before, fault = _soundness(heard, must, keep)
    if instance.fail_to_pass and is_pytest(command) and _never_began(heard):
        # A file that steers the tests asks for what is not there yet.
        failed_before, fault = True, ""
    if not fault and not instance.fail_to_pass:
        failed_before, fault = bool(failing), "" if failing else "The tests pass without any fix."
        if not own and any(path.endswith(".py") and tests[path] is not None for path in tests):
            failed_before, fault = None, f"No test of {some(sorted(tests))} was reported."
    if canary and canary.failed(report) is False:
        fault = "A test that must fail was not reported as failed, without any fix."
    return Before(
        fault,
        failed_before,
        command,
        seen.way,
        tests,
        named=bool(instance.fail_to_pass),
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
    report: TestReport, must: Sequence[str], keep: Sequence[str]
) -> tuple[bool | None, str]:
    """Return whether the right tests fail, and what makes the instance unfit to judge."""
    passed, heard = frozenset(report.passed), bool(report.passed or report.failed)
    if report.timed_out:
        return None, f"Without any fix the tests do not end within {report.seconds:.0f} s."
    if not report.found:
        return None, "No tests were found."
    if not heard:
        return None, "The runner reported no single test, so those that must pass are unknown."
    passing = [test for test in must if test in passed]
    if passing:
        return False, f"Without any fix these pass: {some(passing)}."
    lost = [test for test in keep if test not in passed]
    if lost:
        return True, f"Without any fix these do not pass, but should: {some(lost)}."
    return True, ""


def _never_began(report: TestReport) -> bool:
    """Say whether pytest ended with an error before it came to any test."""
    return report.exit_code in (1, 2, 3, 4) and not (report.passed or report.failed)
