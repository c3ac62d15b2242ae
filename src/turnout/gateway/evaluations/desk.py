"""How evaluations come to count, and how they cease to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from turnout.core.clock import Clock
from turnout.core.govern.evidence import Evaluation, QualityResult, in_force
from turnout.errors import NotFoundError
from turnout.gateway.evaluations.preview import Preview, Prospect, preview

__all__ = ["Applied", "EvaluationDesk", "EvaluationStore"]


class EvaluationStore(Protocol):
    """Evaluations in the order in which they were applied."""

    async def applied(self) -> Sequence[Evaluation]:
        """Return every evaluation, that which was applied last at the end."""
        ...

    async def apply(self, evaluation: Evaluation) -> bool:
        """Let an evaluation count before all others; False where it does so already."""
        ...

    async def undo(self, evaluation_id: str) -> None:
        """Let an evaluation count no more; `NotFoundError` where it was not applied."""
        ...


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of an evaluation that was to be applied."""

    changed: bool
    """False where it was the last one already."""
    preview: Preview


def _nobody(results: Sequence[QualityResult]) -> None:
    """Nobody decides in this process."""


class EvaluationDesk:
    """Reads, applies and takes back evaluations."""

    def __init__(
        self,
        store: EvaluationStore,
        clock: Clock,
        look: Callable[[], Prospect],
        *,
        learn: Callable[[Sequence[QualityResult]], None] = _nobody,
    ) -> None:
        """`learn` is told what counts after a change: other processes find out by themselves."""
        self._store = store
        self._clock = clock
        self._look = look
        self._learn = learn

    async def applied(self) -> Sequence[Evaluation]:
        """Return every evaluation, that which was applied last at the end."""
        return await self._store.applied()

    async def counting(self) -> Sequence[QualityResult]:
        """Return what counts of them."""
        return in_force(await self._store.applied())

    async def preview(self, evaluation: Evaluation) -> Preview:
        """Return what it would change to apply an evaluation; nothing is changed."""
        before = await self._store.applied()
        return preview(self._look(), before, (*_without(before, evaluation.id), evaluation))

    async def preview_undo(self, evaluation_id: str) -> Preview:
        """Return what it would change to take an evaluation back; the errors of `undo`."""
        before = await self._store.applied()
        if all(each.id != evaluation_id for each in before):
            raise NotFoundError(
                f"No evaluation {evaluation_id!r} is applied.",
                mend="`turnout eval apply` without a file lists those that are.",
            )
        return preview(self._look(), before, _without(before, evaluation_id))

    async def apply(self, evaluation: Evaluation, author: str) -> Applied:
        """Let routing go by an evaluation from now on."""
        expected = await self.preview(evaluation)
        signed = replace(evaluation, author=author, applied_at=self._clock.now())
        changed = await self._store.apply(signed)
        self._learn(await self.counting())
        return Applied(changed, expected)

    async def undo(self, evaluation_id: str) -> Preview:
        """Take an evaluation back: what counted before it counts again.

        `NotFoundError` where it was not applied.
        """
        expected = await self.preview_undo(evaluation_id)
        await self._store.undo(evaluation_id)
        self._learn(await self.counting())
        return expected


def _without(applied: Sequence[Evaluation], evaluation_id: str) -> tuple[Evaluation, ...]:
    return tuple(each for each in applied if each.id != evaluation_id)
