"""Puts records right where the gateway's receipts say something else."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from turnout.core.clock import Clock
from turnout.core.events import Entry, SpendCorrected
from turnout.core.ids import RunId
from turnout.core.receipts import Receipt
from turnout.errors import ConflictError, NotFoundError
from turnout.runs.ports import RecordStore
from turnout.runs.spend.compare import Reconciled, compare

__all__ = ["Reconciler", "SpendStore"]

_TRIES: Final = 3
_AT_ONCE: Final = 200
"""Runs that are listed at a time."""


class SpendStore(Protocol):
    """Receipts of runs, and corrections of their records."""

    async def receipts(self, run_id: RunId) -> Sequence[Receipt]:
        """Return the receipts of a run's own calls, oldest first."""
        ...

    async def correct(self, entries: Sequence[Entry], correction: SpendCorrected) -> Entry:
        """Append to the record that `entries` are all of.

        `ConflictError` where it has not ended, or has grown since.
        """
        ...

    async def ended(self, *, after: int, limit: int) -> Sequence[tuple[int, RunId]]:
        """Return runs that have ended, oldest first, each with its number, which is above `after`.

        Those that nobody had begun are left out.
        """
        ...


@dataclass(frozen=True, slots=True)
class Reconciler:
    """Compares records with receipts; the receipts are right."""

    records: RecordStore
    spend: SpendStore
    clock: Clock

    async def run(self, run_id: RunId, *, write: bool) -> Reconciled:
        """Compare a run and, where it has ended and `write` says so, put its record right.

        `NotFoundError` where there is no such run or nobody has begun it.
        """
        for _ in range(_TRIES):
            entries = await self.records.entries(run_id)
            if not entries:
                raise NotFoundError(f"Nobody has begun run {run_id}.")
            found = compare(entries, await self.spend.receipts(run_id))
            if found.agrees or not found.ended or not write:
                return found
            try:
                await self.spend.correct(entries, found.correction())
            except ConflictError:
                continue
            return replace(found, corrected=True)
        raise ConflictError(f"Run {run_id} is being changed by somebody else.", mend="Try again.")

    async def all(self, *, write: bool) -> AsyncIterator[Reconciled]:
        """Compare every run that has ended, oldest first."""
        after = 0
        while part := await self.spend.ended(after=after, limit=_AT_ONCE):
            for _, run_id in part:
                yield await self.run(run_id, write=write)
            after = part[-1][0]
