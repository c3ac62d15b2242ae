"""Evaluations that routing goes by, in memory."""

from collections.abc import Sequence

from turnout.core.govern.evidence import Evaluation
from turnout.errors import NotFoundError

__all__ = ["MemoryEvaluationsStore"]


class MemoryEvaluationsStore:
    """Evaluations in the order in which they were applied."""

    def __init__(self) -> None:
        self._applied: tuple[Evaluation, ...] = ()

    async def applied(self) -> Sequence[Evaluation]:
        """Return every evaluation, that which was applied last at the end."""
        return self._applied

    async def apply(self, evaluation: Evaluation) -> bool:
        """Let an evaluation count before all others; False where it does so already."""
        if self._applied and self._applied[-1].same_as(evaluation):
            return False
        self._applied = (*self._without(evaluation.id), evaluation)
        return True

    async def undo(self, evaluation_id: str) -> None:
        """Let an evaluation count no more; `NotFoundError` where it was not applied."""
        left = self._without(evaluation_id)
        if len(left) == len(self._applied):
            raise NotFoundError(f"No evaluation {evaluation_id!r} is applied.")
        self._applied = left

    def _without(self, evaluation_id: str) -> tuple[Evaluation, ...]:
        return tuple(each for each in self._applied if each.id != evaluation_id)
