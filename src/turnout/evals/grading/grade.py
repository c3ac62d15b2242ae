"""A patch graded by tests that its author never saw, in a sandbox that its run never touched."""

import asyncio
import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from turnout.core.runs import TestReport
from turnout.errors import SandboxError, ToolError, UnfitError
from turnout.evals.grading.before import Before, Befores, KeepsBefores
from turnout.evals.grading.canary import hatch
from turnout.evals.grading.checks import bent_files, is_forged, shown_by
from turnout.evals.grading.model import Grade, GradeName
from turnout.evals.grading.names import count, some
from turnout.evals.grading.patches import (
    Kept,
    judging_paths,
    may_be_source,
    patched_paths,
    without_tests,
)
from turnout.evals.grading.smells import smells
from turnout.evals.grading.suite import Suite, names_nothing, put
from turnout.evals.instances.model import Instance
from turnout.sandbox.base import BaseRef, BaseSpec, Limits, RunTests, Sandbox, SandboxDriver
from turnout.sandbox.steering.read import read_steering
from turnout.sandbox.testrun import USUAL_TESTS, TestPaths, run_tests

__all__ = ["Grade", "GradeName", "Grader"]

_RETRIES = 2
_MOST_PATHS = 500
_PAUSE = 0.2
"""Seconds before a sandbox that failed us is tried again, longer with each time."""


@dataclass(frozen=True, slots=True)
class _Case:
    """What is graded."""

    instance: Instance
    diff: bytes
    base: BaseRef
    before: Before
    strict: bool
    seed: int


class Grader:
    """Grades patches of instances, each in fresh sandboxes at the base commit."""

    def __init__(
        self,
        driver: SandboxDriver,
        limits: Limits,
        *,
        test_timeout: float,
        run_tests: RunTests = run_tests,
        test_paths: TestPaths = USUAL_TESTS,
        keeper: KeepsBefores | None = None,
    ) -> None:
        """Let the tests use `test_timeout` CPU seconds, and some times that by the clock.

        `keeper` keeps what is found out once about an instance.
        """
        self._driver = driver
        self._suite = Suite(
            driver, limits, test_timeout, run_tests=run_tests, test_paths=test_paths
        )
        self._befores = Befores(self._suite, keeper)

    async def grade(
        self,
        instance: Instance,
        base: BaseSpec,
        diff: bytes,
        *,
        strict: bool = False,
        seed: int = 0,
    ) -> Grade:
        """Grade the diff of a run that started from `base`; only cancellation comes out.

        `strict`: a change to tests that exist, or to what controls them, fails the trial; else it
        is left out and listed. `seed`: of Python's hashes while the tests run.
        """
        kept = self._without_tests(instance, diff, maybe=patched_paths(diff))
        if (early := _unworked(kept, strict=strict)) is not None:
            return early
        trouble = ""
        for attempt in range(_RETRIES + 1):
            await asyncio.sleep(_PAUSE * attempt)
            try:
                ref = await self._driver.prepare(base)
                before = await self._befores.of(instance, ref)
                return await self._graded(_Case(instance, diff, ref, before, strict, seed))
            except SandboxError as error:
                trouble = str(error)
            except (UnfitError, ToolError) as error:
                trouble = str(error)
                break
        return _noted(Grade("infrastructure", trouble), kept)

    async def before(self, instance: Instance, base: BaseSpec) -> Before:
        """Return what is known of an instance without any patch; our own trouble comes out."""
        return await self._befores.of(instance, await self._driver.prepare(base))

    def _without_tests(
        self,
        instance: Instance,
        diff: bytes,
        before: Before | None = None,
        *,
        steered: frozenset[str] = frozenset(),
        maybe: frozenset[str] = frozenset(),
    ) -> Kept:
        """Leave out what judges; without `before` all that may be a source among `maybe` is one."""
        paths = self._suite.test_paths
        named = judging_paths((*instance.fail_to_pass, *instance.pass_to_pass))
        judging = {*instance.hidden_tests, *patched_paths(instance.test_patch.encode()), *named}
        sources = before.sources if before else {p for p in maybe if may_be_source(p, paths)}
        return without_tests(
            diff,
            judging,
            paths,
            steered=steered,
            sources=sources.union(patched_paths(instance.patch.encode())),
            plugins=before.way.modules if before else (),
        )

    async def _graded(self, case: _Case) -> Grade:
        began = time.monotonic()
        grade = await self._judged(case)
        texts = {path: data.decode(errors="replace") for path, data in _files(case.before)}
        return replace(
            grade,
            failed_before=case.before.failed_before,
            smells=(*smells(case.diff, texts), *_unseen(grade)),
            environment=case.base.key,
            seconds=time.monotonic() - began,
        )

    async def _judged(self, case: _Case) -> Grade:
        """Judge a patch without its changes to what judges it, wherever these are found."""
        steered: frozenset[str] = frozenset()
        while True:
            kept = self._without_tests(case.instance, case.diff, case.before, steered=steered)
            if (early := _unworked(kept, strict=case.strict)) is not None:
                return early
            if case.before.fault:
                text = f"The task cannot judge: {case.before.fault}"
                return _noted(Grade("infrastructure", text), kept)
            async with self._suite.sandbox(case.base) as sandbox:
                grade, report = await self._tried(sandbox, case, kept)
            if isinstance(grade, Grade):
                break
            steered |= grade
        if report is not None and grade.name == "resolved":
            grade = await self._looked_at_again(case, kept, report, grade)
        return _noted(grade, kept)

    async def _tried(
        self, sandbox: Sandbox, case: _Case, kept: Kept
    ) -> tuple[Grade | frozenset[str], TestReport | None]:
        """Apply a patch and run the tests.

        Where it changes files that steer them, return these: nothing was run then.
        """
        before, paths = case.before, self._suite.test_paths
        then = await read_steering(sandbox, before.command, kept.paths, paths)
        applied = await sandbox.apply_patch(kept.diff)
        if not applied.applied:
            return Grade("does_not_apply", applied.message), None
        now = await read_steering(sandbox, before.command, kept.paths, paths)
        if steered := frozenset(path for path in kept.paths if now.get(path) != then.get(path)):
            return steered, None
        try:
            await _put_tests(sandbox, case, kept, before.tests)
        except ToolError as error:
            return Grade("unresolved", f"The patch is in the way of the tests: {error}"), None
        canary = None
        if before.way.canary != "nowhere":
            canary = hatch(case.instance.fail_to_pass, before.tests)
        report = await self._suite.run(sandbox, before.command, before.way, canary, seed=case.seed)
        shown = shown_by(report, before, canary)
        grade = Grade(
            "unresolved" if shown.fault else "resolved",
            f"{shown.fault}{_left_out(kept)}" if shown.fault else f"{count(shown.passed)} passed.",
            passes_after=not shown.fault,
            missing=shown.missing,
            lost=shown.lost,
            canary_failed=shown.canary_failed,
        )
        return grade, report

    async def _looked_at_again(
        self, case: _Case, kept: Kept, report: TestReport, grade: Grade
    ) -> Grade:
        """See whether the tests that pass now fail where what they expect was bent."""
        before = case.before
        bent = bent_files(before, report, random.SystemRandom())
        if not bent:
            return grade
        canary = None
        if before.way.canary != "nowhere":
            canary = hatch(case.instance.fail_to_pass, before.tests)
        async with self._suite.sandbox(case.base) as sandbox:
            applied = await sandbox.apply_patch(kept.diff)
            if not applied.applied:
                raise SandboxError(f"A patch that applied does not any more: {applied.message}")
            files = {path: each.text.encode() for path, each in bent.items()}
            await _put_tests(sandbox, case, kept, {**before.tests, **files})
            only = tuple(files) if names_nothing(before.command) else ()
            if only and canary is not None:
                only += (canary.path,)
            again = await self._suite.run(
                sandbox,
                before.command,
                before.way,
                canary,
                only=only,
                seed=case.seed,
                usual=before.seconds,
            )
        forged = is_forged(again, bent, canary)
        if not forged:
            return replace(grade, bent_failed=True)
        if again.timed_out:
            return grade
        return replace(
            grade, name="unresolved", detail=forged, passes_after=False, bent_failed=False
        )


def _unseen(grade: Grade) -> Iterator[str]:
    """Yield what a person should know of a patch that is resolved by fewer checks than others."""
    if grade.name == "resolved" and grade.canary_failed is None:
        yield "No test that is bound to fail could be put among those that judge."
    if grade.name == "resolved" and grade.bent_failed is None:
        yield "No second look was taken: no test that must pass could be bent."


def _left_out(kept: Kept) -> str:
    """Return what may be the reason for a failure, after the sentence about that."""
    if not kept.control:
        return ""
    return f" Left out of the patch, as it may change what the tests say: {some(kept.control)}."


def _files(before: Before) -> Iterator[tuple[str, bytes]]:
    return ((path, data) for path, data in before.tests.items() if data is not None)


async def _put_tests(
    sandbox: Sandbox, case: _Case, kept: Kept, tests: Mapping[str, bytes | None]
) -> None:
    extra = case.instance.extra_files
    await put(sandbox, {p: text.encode() for p, text in extra.items() if p not in kept.paths})
    await put(sandbox, tests)


def _unworked(kept: Kept, *, strict: bool) -> Grade | None:
    """Grade a patch that nothing has to be run for; None where it has to."""
    if strict and kept.touched:
        paths = some((*kept.tests, *kept.control))
        return _noted(Grade("tests_touched", f"The patch changes what judges it: {paths}."), kept)
    if not kept.diff:
        left_out = kept.touched or kept.added
        why = "The patch changes tests only." if left_out else "Nothing was changed."
        return _noted(Grade("no_patch", why), kept)
    return None


def _noted(grade: Grade, kept: Kept) -> Grade:
    return replace(
        grade,
        tests_untouched=not kept.touched,
        tests_touched=kept.tests[:_MOST_PATHS],
        control_touched=kept.control[:_MOST_PATHS],
        tests_added=kept.added[:_MOST_PATHS],
    )
