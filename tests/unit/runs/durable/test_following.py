"""Following runs: one look for all who follow, nothing missed, nothing left behind."""

import asyncio
from dataclasses import dataclass, field

from tests.samples import NOON

from turnout.core.events import Notice, RunEnded, RunStarted
from turnout.core.ids import RunId
from turnout.core.service.orders import Order
from turnout.core.tasks import Task
from turnout.errors import StoreError
from turnout.runs.durable.following import Following
from turnout.testing.clock import FrozenClock
from turnout.testing.memory.orders import MemoryOrders
from turnout.testing.stores import MemoryRecordStore

RUN = RunId("run-1")
ORDER = Order(Task("Fix it.", "shop"), "red", "key")


class Steps(FrozenClock):
    """A clock whose sleepers wait for the test."""

    def __init__(self) -> None:
        super().__init__()
        self.turn = asyncio.Semaphore(0)

    async def sleep(self, seconds: float) -> None:
        """Wait until the test lets time pass."""
        await self.turn.acquire()


@dataclass
class Watched(MemoryOrders):
    """Counts looks, and fails some."""

    looks: list[int] = field(default_factory=list)
    broken: bool = False

    async def heads(self, run_ids):
        """Note how many runs were asked about."""
        self.looks.append(len(run_ids))
        if self.broken:
            raise StoreError("The database is gone.")
        return await super().heads(run_ids)


class Rooms:
    """A run that a worker has, and those who follow it."""

    def __init__(self) -> None:
        self.records = MemoryRecordStore()
        self.orders = Watched(self.records)
        self.clock = Steps()
        self.following = Following(self.orders, self.records, self.clock)

    async def begin(self) -> None:
        """Begin the run."""
        await self.orders.submit(RUN, ORDER, NOON)
        await self.orders.claim("w", lambda _: RUN, NOON)
        await self.happen(RunStarted(ORDER.task, "c" * 40, "loop"))

    async def happen(self, event) -> None:
        """Commit an event, as another process would."""
        await self.records.append(RUN, 1, event, NOON)

    async def look(self, times: int = 1) -> None:
        """Let time pass for so many looks."""
        for _ in range(times):
            self.clock.turn.release()
            for _ in range(10):
                await asyncio.sleep(0)

    async def read(self, after: int = 0) -> list[int]:
        """Follow to the end and return the places of what was seen."""
        return [entry.seq async for entry in self.following.entries(RUN, after=after)]


async def test_any_number_of_followers_cost_one_query_a_look():
    """Idle ones ask nothing of their own."""
    rooms = Rooms()
    await rooms.begin()
    async with rooms.following:
        followers = [asyncio.ensure_future(rooms.read(after=1)) for _ in range(100)]
        await rooms.look(2)
        rooms.orders.looks.clear()
        await rooms.look(5)
        assert rooms.orders.looks == [1] * 5
        await rooms.happen(Notice("a"))
        await rooms.happen(RunEnded("answered", "Done."))
        await rooms.look(2)
        assert await asyncio.gather(*followers) == [[2, 3]] * 100


async def test_what_this_process_commits_is_seen_without_a_look():
    """Time need not pass."""
    rooms = Rooms()
    await rooms.begin()
    async with rooms.following:
        follower = asyncio.ensure_future(rooms.read())
        await asyncio.sleep(0)
        await rooms.happen(RunEnded("answered", "Done."))
        rooms.following.wake(RUN)
        assert await follower == [1, 2]


async def test_a_database_that_is_gone_for_a_while_is_asked_again():
    """Those who wait go on waiting."""
    rooms = Rooms()
    await rooms.begin()
    async with rooms.following:
        follower = asyncio.ensure_future(rooms.read(after=1))
        await rooms.look(2)
        rooms.orders.broken = True
        await rooms.happen(RunEnded("answered", "Done."))
        await rooms.look(2)
        assert not follower.done()
        rooms.orders.broken = False
        await rooms.look()
        assert await follower == [2]


async def test_when_nobody_follows_nobody_looks():
    """Not even once more after the last has gone."""
    rooms = Rooms()
    await rooms.begin()
    async with rooms.following:
        entries = rooms.following.entries(RUN)
        await anext(entries)
        await entries.aclose()
        rooms.orders.looks.clear()
        await rooms.look(3)
    assert rooms.orders.looks == []


async def test_a_run_that_is_not_there_is_not_followed():
    """It ends at once."""
    assert await Rooms().read() == []
