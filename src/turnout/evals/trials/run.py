"""One trial: a run on an instance, its patch graded, and what both came to."""

import asyncio
from dataclasses import dataclass, replace

from turnout import __version__
from turnout.core.clock import Clock
from turnout.core.runs import Outcome
from turnout.core.tasks import SurfaceName, Task
from turnout.errors import RepositoryError, UsageError
from turnout.evals.grading.model import Grade
from turnout.evals.instances.model import Instance
from turnout.evals.trials.arms import Arm
from turnout.evals.trials.model import Trial, Unit
from turnout.evals.trials.places import Places
from turnout.evals.trials.ports import Judge, Programs, Receipts, Show, Works
from turnout.evals.trials.usage import usage_of
from turnout.runs.summary import RunResult
from turnout.sandbox.base import BaseSpec

__all__ = ["Doers", "Given", "Shared", "Trials", "with_grade"]

_REFUSED = frozenset({401, 402, 403, 408, 429})
"""Statuses of a failed model call that say nothing of what was asked; so do those from 500 on."""


@dataclass(frozen=True, slots=True)
class Shared:
    """How every run of an evaluation is ordered."""

    surface: SurfaceName = "guide"
    setup: str | None = None
    """For instances that are in a repository of their own and name none."""


@dataclass(frozen=True, slots=True)
class Doers:
    """Who does the work of a trial."""

    works: Works
    programs: Programs | None
    """None where no arm is a command."""
    judge: Judge
    receipts: Receipts


@dataclass(frozen=True, slots=True)
class Given:
    """A unit with what it stands for."""

    unit: Unit
    instance: Instance
    arm: Arm
    key: str
    """Stands for its run in every process; another one after the run came to nothing."""


class Trials:
    """Runs and grades units, any number at once; grading has slots of its own."""

    def __init__(
        self,
        doers: Doers,
        places: Places,
        clock: Clock,
        *,
        grading: int = 1,
        shared: Shared | None = None,
    ) -> None:
        self._doers = doers
        self._places = places
        self._clock = clock
        self._slots = asyncio.Semaphore(grading)
        self._shared = shared or Shared()

    async def run(self, given: Given, show: Show) -> Trial:
        """Run and grade one unit; a failed run is a result, an unfit environment an error."""
        begun = self._clock.monotonic()
        trial = _blank(given)
        try:
            task = await self._task(given)
            if given.arm.kind == "command":
                trial, base, diff = await self._commanded(given, task, trial)
            else:
                trial, base, diff = await self._served(given, task, trial, show)
        except RepositoryError as error:
            return replace(trial, grade="infrastructure", detail=str(error))
        elsewhere = trial.seconds
        if base:
            trial, graded = await self._graded(given, trial, _base(task, base), diff)
            elsewhere += graded
        overhead = max(0.0, self._clock.monotonic() - begun - elsewhere)
        return replace(trial, overhead_seconds=overhead)

    async def _task(self, given: Given) -> Task:
        instance = given.instance
        place = await self._places.of(instance, given.unit.mode)
        shared = self._shared.setup if instance.repository else None
        return Task(
            prompt=instance.problem_statement,
            repository=place.repository,
            base=place.base,
            surface=self._shared.surface,
            test_command=instance.test_command,
            requirements=instance.requirements,
            setup=instance.setup or shared,
        )

    async def _served(
        self, given: Given, task: Task, trial: Trial, show: Show
    ) -> tuple[Trial, str, bytes]:
        """Return what the service's run came to, its base commit and its diff.

        Without a base there is nothing to grade.
        """
        worked = await self._doers.works.work(given.arm, task, given.key, show)
        result = worked.result
        receipts = await self._doers.receipts.receipts(result.run_id)
        trial = replace(
            _with_run(trial, result),
            seconds=max(0.0, result.seconds - worked.away),
            nudges=worked.nudges,
            repairs=sum(len(receipt.repairs) for receipt in receipts),
        )
        fault = _fault(result)
        if fault:
            return replace(trial, grade="infrastructure", detail=fault), "", b""
        return trial, result.base_commit, result.patch.diff

    async def _commanded(self, given: Given, task: Task, trial: Trial) -> tuple[Trial, str, bytes]:
        """Return the same for a command of the user's."""
        started = self._clock.now()
        if self._doers.programs is None:
            raise UsageError(f"The arm {given.arm.name!r} cannot be run here.")
        left = await self._doers.programs.run(given.arm, task, given.key)
        outcome: Outcome = "failed" if left.ended else "answered"
        trial = replace(
            trial,
            outcome="capped" if left.timed_out else outcome,
            reason=left.ended,
            steps=sum(each.calls for each in left.usage),
            usage=left.usage,
            seconds=left.seconds,
            cost_micros=left.cost,
            started_at=started,
            diff=_text(left.diff),
        )
        return trial, left.base, left.diff

    async def _graded(
        self, given: Given, trial: Trial, base: BaseSpec, diff: bytes
    ) -> tuple[Trial, float]:
        """Return the trial with its grade, and how long that took, a wait for a slot included."""
        ready = self._clock.monotonic()
        async with self._slots:
            strict = given.unit.strict
            grade = await self._doers.judge.grade(given.instance, base, diff, strict=strict)
        return with_grade(trial, grade), self._clock.monotonic() - ready


def _base(task: Task, commit: str) -> BaseSpec:
    return BaseSpec(task.repository, commit, task.requirements, setup=task.setup)


def _blank(given: Given) -> Trial:
    unit, instance = given.unit, given.instance
    return Trial(
        instance_id=unit.instance_id,
        instance_digest=unit.instance_digest,
        grade="infrastructure",
        arm=unit.arm,
        arm_digest=unit.arm_digest,
        mode=unit.mode,
        attempt=unit.attempt,
        strict=unit.strict,
        harness=__version__,
        repo=instance.repo,
        difficulty=instance.difficulty,
        title=instance.title,
    )


def _with_run(trial: Trial, result: RunResult) -> Trial:
    used = [use.result for use in result.tool_calls if use.result is not None]
    return replace(
        trial,
        run_id=result.run_id,
        outcome=result.outcome,
        reason=result.reason,
        verdict=result.verdict.name if result.verdict else None,
        steps=result.steps,
        usage=usage_of(result.calls),
        tool_calls=len(result.tool_calls),
        tool_failures=sum(each.is_error for each in used),
        seconds=result.seconds,
        cost_micros=result.cost if result.priced else None,
        started_at=result.started_at,
        diff=_text(result.patch.diff),
    )


def with_grade(trial: Trial, grade: Grade) -> Trial:
    """Return a trial with what its patch was found to be worth."""
    return replace(
        trial,
        grade=grade.name,
        detail=grade.detail,
        environment=grade.environment,
        failed_before=grade.failed_before,
        passes_after=grade.passes_after,
        tests_untouched=grade.tests_untouched,
        tests_touched=grade.tests_touched,
        control_touched=grade.control_touched,
        tests_added=grade.tests_added,
        canary_failed=grade.canary_failed,
        bent_failed=grade.bent_failed,
        smells=grade.smells,
        grading_seconds=grade.seconds,
    )


def _fault(result: RunResult) -> str:
    """Return why a run says nothing about what worked on it; empty where it does."""
    if not result.base_commit or result.outcome == "cancelled":
        return result.reason
    if result.outcome != "failed":
        return ""
    failed = result.failed_calls[-1] if result.failed_calls else None
    if failed is not None:
        status = failed.status
        away = status is None or status >= 500 or status in _REFUSED
        return result.reason if away else ""
    # Whatever a model does, our own tests judge what it leaves behind.
    return result.reason if result.verdict is None else ""


def _text(diff: bytes) -> str:
    return diff.decode(errors="backslashreplace")
