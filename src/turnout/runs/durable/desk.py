"""Where runs are ordered and asked about; working on them is the engine's affair."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

from turnout.core.clock import Clock
from turnout.core.events import Entry
from turnout.core.ids import RunId, new_run_id
from turnout.core.service.orders import (
    Answer,
    Head,
    Later,
    Once,
    Order,
    OrderedRun,
    Publish,
    RunFilter,
    RunPage,
    Submitted,
)
from turnout.errors import ConflictError, UsageError
from turnout.runs.durable.announcing import Announcer, Tell, tell_nobody
from turnout.runs.durable.following import Following
from turnout.runs.durable.ports import OrderStore, RunEngine
from turnout.runs.ports import RecordStore

__all__ = ["Desk"]


class Desk:
    """The service's front; what it has answered is durable, whoever works on it and when."""

    def __init__(
        self,
        orders: OrderStore,
        records: RecordStore,
        engine: RunEngine,
        following: Following,
        clock: Clock,
        tell: Tell = tell_nobody,
    ) -> None:
        self._orders = orders
        self._records = records
        self._engine = engine
        self._following = following
        self._clock = clock
        self._announcer = Announcer(orders, records, clock, tell)

    async def submit(self, order: Order, once: Once | None = None) -> Submitted:
        """Take an order: it is durable before this returns.

        `UsageError` for an empty task, `ConflictError` where the key of `once` stands for another
        request.
        """
        if not order.task.prompt.strip():
            raise UsageError("The task is empty.", mend="Say in a sentence what is to be done.")
        submitted = await self._orders.submit(new_run_id(), order, self._clock.now(), once)
        if submitted.created:
            await self._engine.enqueue(submitted.run.run_id)
        return submitted

    async def made(self, project: str, once: Once) -> OrderedRun | None:
        """Return the run that a key of a project stands for; None: it has made none yet.

        `ConflictError` where it stands for another request.
        """
        return await self._orders.made(project, once)

    async def get(self, project: str, run_id: RunId) -> OrderedRun:
        """Return a run; `NotFoundError` where the project has none of that id."""
        return await self._orders.get(project, run_id)

    async def whose(self, run_id: RunId) -> str | None:
        """Return the project of a run; None where there is none. Only for whoever may see all."""
        return await self._orders.whose(run_id)

    async def page(
        self,
        project: str,
        wanted: RunFilter | None = None,
        *,
        before: int | None = None,
        limit: int = 50,
    ) -> RunPage:
        """Return runs of the project, newest first."""
        return await self._orders.page(project, wanted or RunFilter(), before=before, limit=limit)

    async def cancel(self, project: str, run_id: RunId, by: str = "") -> OrderedRun:
        """Stop a run, on the wish of a key; one that has ended stays as it is."""
        before = await self._orders.get(project, run_id)
        if before.state == "ended":
            return before
        run = await self._orders.cancel(project, run_id, self._clock.now(), by)
        if run.state == "ended":
            await self._announcer.stands(run)
        else:
            await self._engine.cancel(run_id)
        self._following.wake(run_id)
        return run

    async def decide(self, project: str, run_id: RunId, answer: Answer) -> OrderedRun:
        """Decide on the call that a run waits for.

        `ConflictError` where it waits for nothing, or for another call than the answer names.
        """
        await self._orders.answer(project, run_id, answer, self._clock.now())
        await self._engine.enqueue(run_id)
        self._following.wake(run_id)
        return await self._orders.get(project, run_id)

    async def retry(
        self, project: str, run_id: RunId, key: str, once: Once | None = None
    ) -> Submitted:
        """Order a run that has ended again, on `key`; `ConflictError` where it has not ended.

        Nothing of the order is looked at; otherwise as `submit`. Whoever had its diff published
        later had read that one: the new one is not published for that.
        """
        run = await self._orders.get(project, run_id)
        if run.state != "ended":
            raise ConflictError(
                f"Run {run_id} has not ended.", mend="Wait for its end, or cancel it first."
            )
        again = replace(run.order, key=key, retry_of=run_id, later=Later())
        return await self.submit(again, once)

    async def publish(self, project: str, run_id: RunId, wanted: Publish) -> OrderedRun:
        """Have the diff of a run that has ended published, by whoever reaches its repository.

        `ConflictError` where the run has not ended, or that was done before.
        """
        return await self._orders.publish(project, run_id, wanted, self._clock.now())

    async def entries(
        self, project: str, run_id: RunId, *, after: int = 0, limit: int | None = None
    ) -> Sequence[Entry]:
        """Return a run's record from after an entry; empty where nobody has begun it.

        `limit`: at most so many entries.
        """
        await self._orders.get(project, run_id)
        return await self._records.entries(run_id, after=after, limit=limit)

    async def heads(self, project: str, run_id: RunId) -> AsyncGenerator[Head, None]:
        """Yield how far a run is, now and whenever that changes, until it has ended."""
        await self._orders.get(project, run_id)
        async with aclosing(self._following.heads(run_id)) as heads:
            async for head in heads:
                yield head

    async def follow(
        self, project: str, run_id: RunId, *, after: int = 0
    ) -> AsyncGenerator[Entry, None]:
        """Yield entries from after `after` as they are committed, until the run has ended."""
        await self._orders.get(project, run_id)
        async with aclosing(self._following.entries(run_id, after=after)) as entries:
            async for entry in entries:
                yield entry
