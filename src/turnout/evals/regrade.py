"""Kept patches graded again, without asking any model."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from turnout import __version__
from turnout.errors import RepositoryError
from turnout.evals.grading.grade import Grader
from turnout.evals.grading.model import Grade
from turnout.evals.instances.model import Instance
from turnout.evals.trials.model import Mode, Trial
from turnout.evals.trials.run import with_grade
from turnout.sandbox.base import BaseSpec

__all__ = ["BaseOf", "Regraded", "gradable", "regrade"]

BaseOf = Callable[[Instance, Mode], Awaitable[BaseSpec]]
"""Returns what the run of an instance started from; `RepositoryError` where it is gone."""

_AMONG_ESCAPES: Final = "\\x"


@dataclass(frozen=True, slots=True)
class Regraded:
    """A trial before and after its patch was graded again."""

    old: Trial
    new: Trial

    @property
    def changed(self) -> bool:
        """Whether it is graded otherwise now."""
        return self.old.grade != self.new.grade


def gradable(
    trials: Sequence[Trial], instances: Sequence[Instance]
) -> tuple[tuple[Trial, Instance], ...]:
    """Return the trials whose patches can be graded, each with its instance as it was then.

    Left out are those of other instances or other rows of these, and those that came to no end.
    """
    known: Mapping[tuple[str, str], Instance] = {
        (each.instance_id, each.digest): each for each in instances
    }
    found = ((trial, known.get((trial.instance_id, trial.instance_digest))) for trial in trials)
    return tuple(
        (trial, instance)
        for trial, instance in found
        if instance is not None and trial.outcome is not None
    )


async def regrade(
    pairs: Sequence[tuple[Trial, Instance]], grader: Grader, base_of: BaseOf, *, jobs: int = 1
) -> AsyncIterator[Regraded]:
    """Grade patches again, several at once, and yield each when it is done."""
    slots = asyncio.Semaphore(jobs)

    async def one(trial: Trial, instance: Instance) -> Regraded:
        async with slots:
            return Regraded(trial, await _again(trial, instance, grader, base_of))

    tasks = [asyncio.ensure_future(one(*pair)) for pair in pairs]
    try:
        for done in asyncio.as_completed(tasks):
            yield await done
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _again(trial: Trial, instance: Instance, grader: Grader, base_of: BaseOf) -> Trial:
    try:
        base = await base_of(instance, trial.mode)
    except RepositoryError as error:
        grade = Grade("infrastructure", str(error))
    else:
        grade = await grader.grade(instance, base, trial.diff.encode(), strict=trial.strict)
    if grade.name == "does_not_apply" != trial.grade and _AMONG_ESCAPES in trial.diff:
        # Bytes that are no text were kept as escapes: what is left is not the patch that was made.
        grade = Grade("infrastructure", "The patch was not kept as it was made.")
    graded = with_grade(trial, grade)
    return replace(graded, grading_seconds=grade.seconds, harness=__version__)
