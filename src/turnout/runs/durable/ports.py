"""What the durable service asks of its store and of its engine, and what it offers its clients."""

from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Protocol

from turnout.core.events import ApprovalAsked, Entry
from turnout.core.ids import RunId
from turnout.core.service.orders import (
    Answer,
    Head,
    Once,
    Order,
    OrderedRun,
    Publish,
    RunFilter,
    RunPage,
    Submitted,
)
from turnout.core.service.turns import Pick
from turnout.runs.ports import ModelAccess

__all__ = ["ModelsFor", "OrderStore", "RunDesk", "RunEngine"]

ModelsFor = Callable[[Order], AbstractAsyncContextManager[ModelAccess]]
"""Opens a way to models whose calls are charged to the key that an order names."""


class OrderStore(Protocol):
    """Orders and where their runs stand, in step with the record."""

    async def submit(
        self, run_id: RunId, order: Order, at: datetime, once: Once | None = None
    ) -> Submitted:
        """Keep an order as queued; with the same `once` of a project, the run it made before.

        `ConflictError` where the key of `once` stands for another request, `FullError` where no
        more of the project's runs may wait.
        """
        ...

    async def made(self, project: str, once: Once) -> OrderedRun | None:
        """Return the run that a key of a project stands for; None: it has made none yet.

        `ConflictError` where it stands for another request.
        """
        ...

    async def get(self, project: str, run_id: RunId) -> OrderedRun:
        """Return a project's run; `NotFoundError` where it has none of that id."""
        ...

    async def whose(self, run_id: RunId) -> str | None:
        """Return the project of a run, whoever asks; None where there is no such run."""
        ...

    async def heads(self, run_ids: Collection[RunId]) -> Mapping[RunId, Head]:
        """Return how far runs are; one that was never ordered is left out."""
        ...

    async def page(
        self, project: str, wanted: RunFilter, *, before: int | None, limit: int
    ) -> RunPage:
        """Return a project's runs that are wanted, newest first, from before a number."""
        ...

    async def claim(self, worker: str, pick: Pick, at: datetime) -> OrderedRun | None:
        """Give `worker` the run whose turn it is, running and under a new epoch; None: nothing."""
        ...

    async def release(self, run_id: RunId, epoch: int) -> None:
        """Queue a running run again; nothing is done where the epoch is not its newest."""
        ...

    async def wait(self, run_id: RunId, epoch: int, asked: ApprovalAsked) -> None:
        """Let a running run wait for a person; nothing is done where the epoch is an older one."""
        ...

    async def answer(self, project: str, run_id: RunId, answer: Answer, at: datetime) -> Entry:
        """Put a decision on record and queue the run, in one; `ConflictError`: it does not wait."""
        ...

    async def cancel(self, project: str, run_id: RunId, at: datetime, by: str = "") -> OrderedRun:
        """End a run that nobody works on; note the wish, and whose it is, where somebody does.

        A run that has ended stays as it is; of two wishes the first counts.
        """
        ...

    async def publish(
        self, project: str, run_id: RunId, wanted: Publish, at: datetime
    ) -> OrderedRun:
        """Have the diff of a run that has ended published.

        `ConflictError` where the run has not ended, or that was done before.
        """
        ...

    async def asked_to_cancel(self, worker: str) -> Sequence[RunId]:
        """Return which of the runs that `worker` has are to be stopped."""
        ...

    async def beat(self, worker: str) -> None:
        """Note by the database's clock that a worker lives."""
        ...

    async def leave(self, worker: str) -> None:
        """Forget a worker; the runs that it has are queued."""
        ...

    async def rescue(self, *, stale: float, asker: str) -> Sequence[RunId]:
        """Queue the runs of workers that gave no sign of life for `stale` seconds.

        By the database's clock; those of the `asker` are left alone.
        """
        ...


class RunEngine(Protocol):
    """Has segments of runs worked on; it holds nothing that the store does not."""

    async def enqueue(self, run_id: RunId) -> None:
        """Have a queued run thought of; asked twice, or for one that is not queued, is harmless."""
        ...

    async def cancel(self, run_id: RunId) -> None:
        """Tell whoever works on a run that it is to stop after the step under way."""
        ...


class RunDesk(Protocol):
    """The durable service, as its API sees it; a run of another project is a `NotFoundError`."""

    async def submit(self, order: Order, once: Once | None = None) -> Submitted:
        """Take an order: it is durable before this returns.

        `UsageError` for one that cannot be, `ConflictError` for a key of `once` that stands for
        another request, `FullError` where no more runs of the project may wait.
        """
        ...

    async def made(self, project: str, once: Once) -> OrderedRun | None:
        """Return the run that a key of a project stands for; None: it has made none yet.

        `ConflictError` where it stands for another request.
        """
        ...

    async def get(self, project: str, run_id: RunId) -> OrderedRun:
        """Return a run."""
        ...

    async def whose(self, run_id: RunId) -> str | None:
        """Return the project of a run; None where there is none. Only for whoever may see all."""
        ...

    async def page(
        self,
        project: str,
        wanted: RunFilter | None = None,
        *,
        before: int | None = None,
        limit: int = 50,
    ) -> RunPage:
        """Return runs, newest first."""
        ...

    async def cancel(self, project: str, run_id: RunId, by: str = "") -> OrderedRun:
        """Stop a run, on the wish of a key; one that has ended stays as it is."""
        ...

    async def decide(self, project: str, run_id: RunId, answer: Answer) -> OrderedRun:
        """Decide on the call that a run waits for.

        `ConflictError` where it waits for nothing, or for another call than the answer names.
        """
        ...

    async def retry(
        self, project: str, run_id: RunId, key: str, once: Once | None = None
    ) -> Submitted:
        """Order a run that has ended again, on `key`; `ConflictError` where it has not ended.

        Nothing of the order is looked at; otherwise as `submit`.
        """
        ...

    async def publish(self, project: str, run_id: RunId, wanted: Publish) -> OrderedRun:
        """Have the diff of a run that has ended published; `ConflictError` where it cannot be."""
        ...

    async def entries(
        self, project: str, run_id: RunId, *, after: int = 0, limit: int | None = None
    ) -> Sequence[Entry]:
        """Return a run's record from after an entry; empty where nobody has begun it.

        `limit`: at most so many entries.
        """
        ...

    def heads(self, project: str, run_id: RunId) -> AsyncGenerator[Head, None]:
        """Yield how far a run is, now and whenever that changes, until it has ended."""
        ...

    def follow(self, project: str, run_id: RunId, *, after: int = 0) -> AsyncGenerator[Entry, None]:
        """Yield entries from after `after`, as they are committed, until the run has ended."""
        ...
