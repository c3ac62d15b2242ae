"""A worker: it claims, works, shows signs of life, takes over and leaves."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest
from tests.samples import STARTED
from tests.unit.runs.durable.parts import ORDER, first

from turnout.core.events import RunEnded
from turnout.core.ids import RunId
from turnout.core.service.orders import OrderedRun
from turnout.errors import StoreError
from turnout.runs.durable.engine import Pace, TaskEngine, Worker
from turnout.runs.stop import Stop
from turnout.testing.clock import FrozenClock
from turnout.testing.memory.orders import MemoryOrders
from turnout.testing.stores import MemoryRecordStore

PACE = Pace(beat=1.0, stale=3.0, look=0.01, grace=5.0)


class Beats(FrozenClock):
    """A clock whose sleepers wait until the test lets their time pass."""

    def __init__(self) -> None:
        super().__init__()
        self._turn = asyncio.Semaphore(0)
        self._slept = asyncio.Semaphore(0)

    async def sleep(self, seconds: float) -> None:
        """Wait for the test."""
        self._slept.release()
        await self._turn.acquire()
        self.advance(seconds)

    async def beat(self, times: int = 1) -> None:
        """Let the next sleepers go on, one after the other, until they sleep again."""
        for _ in range(times):
            await self._slept.acquire()
            self._turn.release()
        await self._slept.acquire()
        self._slept.release()


@dataclass
class Failing(MemoryOrders):
    """Orders whose database may be away."""

    away: bool = False

    async def beat(self, worker: str) -> None:
        """Fail while it is away."""
        if self.away:
            raise StoreError("It is away.")
        await super().beat(worker)


@dataclass
class Works:
    """A worker whose segments do what the test says."""

    records: MemoryRecordStore = field(default_factory=MemoryRecordStore)
    clock: Beats = field(default_factory=Beats)
    begun: list[RunId] = field(default_factory=list)
    stops: dict[RunId, Stop] = field(default_factory=dict)
    ends: dict[RunId, asyncio.Future[None]] = field(default_factory=dict)
    came: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))

    def __post_init__(self) -> None:
        self.orders = Failing(self.records, self.clock.monotonic)

    async def work(self, run: OrderedRun, stop: Stop) -> None:
        """Begin, and end as the test says; one that is parked goes back."""
        self.begun.append(run.run_id)
        self.stops[run.run_id] = stop
        end = self.ends[run.run_id] = asyncio.get_running_loop().create_future()
        if run.started_at is None:
            await self.records.append(run.run_id, run.epoch, STARTED, self.clock.now())
        self.came.release()
        await end
        if stop.parked:
            await self.orders.release(run.run_id, run.epoch)
        else:
            end_of_run = RunEnded("answered", "Done.")
            await self.records.append(run.run_id, run.epoch, end_of_run, self.clock.now())

    @asynccontextmanager
    async def worker(self, most: int = 2, *, alone: bool = False) -> AsyncIterator[TaskEngine]:
        """Let one work until the block ends."""
        post = Worker("w", most, alone, PACE)
        engine = TaskEngine(self.orders, self.records, self.work, first, self.clock, post)
        async with engine:
            yield engine

    async def order(self, *names: str) -> None:
        """Order runs."""
        for name in names:
            await self.orders.submit(RunId(name), ORDER, self.clock.now())

    async def states(self) -> dict[str, str]:
        """Return where all runs stand."""
        rows = [await self.orders.get("red", RunId(name)) for name in ("run-0", "run-1", "run-2")]
        return {row.run_id: row.state for row in rows}


@pytest.fixture
def works():
    """Return a place to work."""
    return Works()


async def test_no_more_is_worked_on_at_once_than_is_allowed(works):
    """The next run begins when one has ended; told of a run, a worker looks at once."""
    async with works.worker() as engine:
        await works.order("run-0", "run-1", "run-2")
        await engine.enqueue("run-0")
        await works.came.acquire()
        await works.came.acquire()
        assert works.begun == ["run-0", "run-1"]
        assert set(engine.under_way) == {"run-0", "run-1"}
        works.ends["run-0"].set_result(None)
        await works.came.acquire()
        assert works.begun[2] == "run-2"
        for name in ("run-1", "run-2"):
            works.ends[name].set_result(None)
    assert (await works.states())["run-0"] == "ended"


async def test_a_run_is_stopped_from_here_and_from_elsewhere(works):
    """Once: a second wish would give up the step under way."""
    async with works.worker() as engine:
        await works.order("run-0", "run-1", "run-2")
        await works.came.acquire()
        await works.came.acquire()
        await engine.cancel("run-0")
        await engine.cancel("run-0")
        await works.orders.cancel("red", "run-1", works.clock.now(), "ann")
        await works.clock.beat(2)
        assert works.stops["run-1"].why == "Cancelled by ann."
        for name in ("run-0", "run-1"):
            assert works.stops[name].asked
            assert not works.stops[name].urgent
            works.ends[name].set_result(None)
        await works.came.acquire()
        works.ends["run-2"].set_result(None)


async def test_a_worker_that_is_to_end_leaves_its_runs(works):
    """Calls under way end; nothing new begins; others may go on at once."""
    await works.order("run-0", "run-1", "run-2")
    async with works.worker() as engine:
        await works.came.acquire()
        await works.came.acquire()
        draining = asyncio.create_task(engine.drain())
        await asyncio.sleep(0)
        assert all(stop.parked for stop in works.stops.values())
        assert not draining.done()
        for end in works.ends.values():
            end.set_result(None)
        await draining
    assert works.begun == ["run-0", "run-1"]
    assert set((await works.states()).values()) == {"queued"}


async def test_calls_that_take_too_long_do_not_hold_the_end_up(works):
    """Their runs are queued all the same."""
    await works.order("run-0", "run-1", "run-2")
    post = Worker("w", 2, pace=replace(PACE, grace=0.01))
    engine = TaskEngine(works.orders, works.records, works.work, first, works.clock, post)
    async with engine:
        await works.came.acquire()
        await works.came.acquire()
    assert set((await works.states()).values()) == {"queued"}


async def test_a_defect_ends_the_run_and_a_failing_store_does_not(works):
    """The one would come again; the other passes."""
    await works.order("run-0", "run-1", "run-2")
    async with works.worker() as engine:
        await works.came.acquire()
        await works.came.acquire()
        works.ends["run-0"].set_exception(ValueError("a defect"))
        works.ends["run-1"].set_exception(StoreError("It is away."))
        await works.came.acquire()
        await works.came.acquire()
        assert (await works.orders.get("red", "run-0")).outcome == "failed"
        again = await works.orders.get("red", "run-1")
        assert (again.state, again.epoch) == ("running", 2)
        assert set(engine.under_way) == {"run-1", "run-2"}
        for name in engine.under_way:
            works.ends[name].set_result(None)


async def test_nobody_is_taken_over_until_our_own_signs_have_come_through(works):
    """After an outage all look dead: whoever comes back first must not take everything."""
    await works.order("run-0")
    await works.orders.claim("other", first, works.clock.now())
    await works.orders.beat("other")
    async with works.worker() as engine:
        await works.clock.beat()
        works.orders.away = True
        await works.clock.beat(6)
        assert not engine.healthy
        works.orders.away = False
        await works.clock.beat(2)
        assert engine.healthy
        assert (await works.orders.get("red", "run-0")).worker == "other"
        await works.clock.beat(3)
        await works.came.acquire()
        assert (await works.orders.get("red", "run-0")).worker == "w"
        works.ends["run-0"].set_result(None)


async def test_a_worker_that_is_alone_takes_all_over_at_once(works):
    """Whatever is said to be worked on was left by a process that is gone."""
    await works.order("run-0")
    await works.orders.claim("dead", first, works.clock.now())
    await works.orders.beat("dead")
    async with works.worker(alone=True):
        await works.came.acquire()
        assert (await works.orders.get("red", "run-0")).worker == "w"
        works.ends["run-0"].set_result(None)
