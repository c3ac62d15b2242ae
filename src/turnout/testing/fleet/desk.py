"""What becomes of a service's runs, looked at in its database from outside."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final

from sqlalchemy import func, select

from turnout.core.clock import SystemClock
from turnout.core.events import Entry, StepStarted, ToolCallDone
from turnout.core.ids import RunId
from turnout.core.service.orders import OrderedRun, RunFilter
from turnout.errors import StoreError
from turnout.store.database import Database
from turnout.store.orders import OrdersStore
from turnout.store.record import RecordStore
from turnout.store.schema import orders, receipts, replies
from turnout.testing.fleet.counting import counting_order, repeated, written

__all__ = ["Desk"]

_LOOK: Final = 0.05
_PAGE: Final = 500


class Desk:
    """Orders runs and looks at them; waits are bounded and raise `TimeoutError`."""

    def __init__(self, database: Database) -> None:
        self.orders = OrdersStore(database)
        self.records = RecordStore(database)
        self._database = database
        self.names: list[RunId] = []
        """Of the runs that were ordered here."""

    async def order(self, count: int, steps: int) -> None:
        """Order runs of so many steps each."""
        for _ in range(count):
            self.names.append(RunId(f"run-{len(self.names):012x}"))
            await self.orders.submit(self.names[-1], counting_order(steps), SystemClock().now())

    async def runs(self) -> Sequence[OrderedRun]:
        """Return the runs as they stand."""
        return [await self.orders.get("red", name) for name in self.names]

    async def done(self) -> int:
        """Return how many events are on record of all runs."""
        heads = await self.orders.heads(self.names)
        return sum(head.last_seq for head in heads.values())

    async def under_way(self, count: int, seconds: float = 120.0) -> None:
        """Wait until so many runs are worked on."""
        wanted = RunFilter(states=("running",))

        async def holds() -> bool:
            page = await self.orders.page("red", wanted, before=None, limit=_PAGE)
            return len(page.runs) >= count

        await self.until(holds, seconds)

    async def progress(self, by: int, seconds: float = 300.0) -> None:
        """Wait until so many more events are on record, or all runs have ended."""
        goal = await self.done() + by

        async def holds() -> bool:
            return await self.done() >= goal or await self.all_ended()

        await self.until(holds, seconds)

    async def ended(self) -> int:
        """Return how many runs have ended."""
        wanted = select(func.count()).where(orders.c.state == "ended")
        return await self._database.read(lambda connection: connection.scalars(wanted).one())

    async def all_ended(self) -> bool:
        """Whether every run has ended."""
        return await self.ended() >= len(self.names)

    async def end(self, seconds: float) -> None:
        """Wait for the end of all runs."""
        await self.until(self.all_ended, seconds)

    async def until(self, holds: Callable[[], Awaitable[bool]], seconds: float) -> None:
        """Look until something holds that happens in other processes; an outage is looked over."""
        async with asyncio.timeout(seconds):
            while True:
                if await _held(holds):
                    return
                await asyncio.sleep(_LOOK)

    async def claims(self) -> Collection[str]:
        """Return the requests that have claimed an idempotency key and are not answered yet."""
        wanted = select(replies.c.holder).where(replies.c.payload == "")
        return set(await self._database.read(lambda connection: connection.scalars(wanted).all()))

    async def unknown(self) -> Collection[str]:
        """Return the requests whose receipt says that nobody knows what became of them."""
        wanted = select(receipts.c.request_id).where(receipts.c.status == "unknown")
        return set(await self._database.read(lambda connection: connection.scalars(wanted).all()))

    async def faults(self, steps: int) -> Sequence[str]:
        """Return what is not as if nothing had happened: a sentence for each fault."""
        found: list[str] = []
        for name in self.names:
            run = await self.orders.get("red", name)
            entries = await self.records.entries(name)
            if (run.state, run.outcome) != ("ended", "answered"):
                found.append(f"{name} is {run.state}, {run.outcome}")
            if written(entries) != [str(n) for n in range(1, steps + 1)]:
                found.append(f"{name} has written {written(entries)}")
            found += [f"{name} holds twice: {what}" for what in repeated(entries)]
            if [entry.seq for entry in entries] != list(range(1, len(entries) + 1)):
                found.append(f"{name} has a gap in its record")
        return found

    async def steps(self) -> int:
        """Return how many steps were begun, of all runs."""
        return await self._count(lambda entry: isinstance(entry.event, StepStarted))

    async def interrupted(self) -> int:
        """Return how many tool calls were cut off, so that the model had to decide on them."""
        return await self._count(
            lambda entry: isinstance(entry.event, ToolCallDone) and entry.event.result.unsure
        )

    async def _count(self, wanted: Callable[[Entry], bool]) -> int:
        return sum([sum(map(wanted, await self.records.entries(name))) for name in self.names])


async def _held(holds: Callable[[], Awaitable[bool]]) -> bool:
    try:
        return await holds()
    except StoreError:
        return False
