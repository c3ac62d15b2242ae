"""Freezing what nobody uses and ending what is too old, by a clock that a test moves."""

import asyncio
import heapq
import itertools
import math
from collections.abc import AsyncIterator, Callable

import pytest

from turnout.errors import SandboxDiedError
from turnout.sandbox.base import Limits
from turnout.sandbox.resident.lifetime import Lifetime

LIMITS = Limits(idle_seconds=10, lifetime_seconds=100)


class Timer:
    """A call that is still to come."""

    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        """Let it not come."""
        self.cancelled = True


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waiting: list[tuple[float, int, Timer]] = []
        self._count = itertools.count()

    def time(self) -> float:
        """Return the time."""
        return self.now

    def call_later(self, delay: float, callback: Callable[[], object]) -> Timer:
        """Note a call."""
        timer = Timer(callback)
        heapq.heappush(self.waiting, (self.now + delay, next(self._count), timer))
        return timer

    async def pass_by(self, seconds: float) -> None:
        """Let time pass, with everything that is due meanwhile."""
        end = self.now + seconds
        while self.waiting and self.waiting[0][0] <= end:
            self.now, _, timer = heapq.heappop(self.waiting)
            if not timer.cancelled:
                timer.callback()
            for _ in range(5):
                await asyncio.sleep(0)
        self.now = end

    @property
    def pending(self) -> int:
        """How many calls are still to come."""
        return sum(not timer.cancelled for _, _, timer in self.waiting)


class Walls:
    """What is frozen, and what became of it."""

    def __init__(self) -> None:
        self.frozen = False
        self.changes: list[str] = []
        self.ended: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def freeze(self) -> None:
        """Note it, after the gate was opened."""
        await self.gate.wait()
        self.frozen = True
        self.changes.append("freeze")

    async def thaw(self) -> None:
        """Note it."""
        if self.ended:
            raise SandboxDiedError("It is gone.")
        self.frozen = False
        self.changes.append("thaw")


@pytest.fixture
def clock() -> Clock:
    """Return a clock that stands still."""
    return Clock()


@pytest.fixture
async def walls() -> Walls:
    """Return walls that note what is done to them."""
    return Walls()


@pytest.fixture
async def lifetime(clock: Clock, walls: Walls) -> AsyncIterator[Lifetime]:
    """Begin a lifetime."""
    begun = Lifetime(LIMITS, walls, walls.ended.append, clock)
    yield begun
    begun.stop()


async def test_what_nobody_uses_is_frozen(clock: Clock, walls: Walls, lifetime: Lifetime) -> None:
    """Once, after its time; the next call thaws it and time counts from its end."""
    await clock.pass_by(9.9)
    assert not walls.frozen
    await clock.pass_by(0.2)
    assert walls.frozen
    await clock.pass_by(20)
    async with lifetime.call():
        assert not walls.frozen
        await clock.pass_by(30)
        assert not walls.frozen
    await clock.pass_by(9.9)
    assert not walls.frozen
    await clock.pass_by(0.2)
    assert walls.changes == ["freeze", "thaw", "freeze"]


async def test_each_call_puts_the_freezing_off(
    clock: Clock, walls: Walls, lifetime: Lifetime
) -> None:
    """With a single timer, however many calls there are."""
    for _ in range(20):
        await clock.pass_by(4)
        async with lifetime.call():
            pass
    assert walls.changes == []
    assert clock.pending == 2


async def test_of_two_calls_the_later_end_counts(
    clock: Clock, walls: Walls, lifetime: Lifetime
) -> None:
    """It is not idle while one is under way."""
    async with lifetime.call():
        async with lifetime.call():
            await clock.pass_by(11)
        await clock.pass_by(11)
        assert not walls.frozen
    await clock.pass_by(10.1)
    assert walls.frozen


async def test_a_call_waits_for_a_freezing_under_way(
    clock: Clock, walls: Walls, lifetime: Lifetime
) -> None:
    """And thaws it then, so that nothing is asked of what stands still."""
    walls.gate.clear()
    await clock.pass_by(10.1)
    entered = asyncio.Event()

    async def call() -> None:
        async with lifetime.call():
            assert walls.changes == ["freeze", "thaw"]
            entered.set()

    calling = asyncio.create_task(call())
    await asyncio.sleep(0)
    assert not entered.is_set()
    walls.gate.set()
    await calling


async def test_a_freezing_given_up_half_way_is_thawed(walls: Walls, lifetime: Lifetime) -> None:
    """Nobody knows how far it came, so the next call does not rely on it."""
    walls.gate.clear()
    pausing = asyncio.create_task(lifetime.pause())
    await asyncio.sleep(0)
    pausing.cancel()
    await asyncio.wait([pausing])
    async with lifetime.call():
        assert walls.changes == ["thaw"]


async def test_pausing_and_resuming_may_be_repeated(
    clock: Clock, walls: Walls, lifetime: Lifetime
) -> None:
    """Only what changes something is done, and only that counts as frozen."""
    await lifetime.resume()
    await lifetime.pause()
    await clock.pass_by(3)
    await lifetime.pause()
    await clock.pass_by(4)
    assert lifetime.frozen_seconds == 7
    await lifetime.resume()
    await lifetime.resume()
    await clock.pass_by(5)
    assert walls.changes == ["freeze", "thaw"]
    assert (lifetime.frozen_seconds, lifetime.age) == (7, 12)


async def test_a_pause_outlives_the_call_that_was_under_way(
    clock: Clock, walls: Walls, lifetime: Lifetime
) -> None:
    """Its end does not thaw anything."""
    async with lifetime.call():
        await lifetime.pause()
    await clock.pass_by(50)
    assert walls.changes == ["freeze"]
    await lifetime.resume()
    await clock.pass_by(10.1)
    assert walls.changes == ["freeze", "thaw", "freeze"]


async def test_nobody_thaws_what_is_held_frozen(walls: Walls, lifetime: Lifetime) -> None:
    """Calls wait until it is over; then it is as it was before."""
    async with lifetime.frozen():
        call = asyncio.create_task(anext(aiter_of(lifetime)))
        await asyncio.sleep(0)
        assert walls.frozen
        assert not call.done()
    await call
    assert walls.changes == ["freeze", "thaw"]
    await lifetime.pause()
    async with lifetime.frozen():
        pass
    assert walls.frozen


async def test_what_is_begun_past_the_calls_is_not_frozen_half_way(
    clock: Clock, walls: Walls, lifetime: Lifetime
) -> None:
    """It thaws nothing, and falling asleep or a pause waits for its end."""
    async with lifetime.unchanged():
        await clock.pass_by(50)
        pause = asyncio.create_task(lifetime.pause())
        await asyncio.sleep(0)
        assert walls.changes == []
    await pause
    assert walls.changes == ["freeze"]
    async with lifetime.unchanged():
        assert walls.frozen


async def aiter_of(lifetime: Lifetime) -> AsyncIterator[None]:
    """Make one call."""
    async with lifetime.call():
        yield None


async def test_a_lifetime_ends_once(clock: Clock, walls: Walls, lifetime: Lifetime) -> None:
    """Whatever is under way; nothing is scheduled afterwards."""
    async with lifetime.call():
        await clock.pass_by(99.9)
        assert walls.ended == []
        await clock.pass_by(0.2)
    assert walls.ended == ["it has lived for its 100 seconds"]
    await clock.pass_by(1000)
    assert len(walls.ended) == 1
    assert clock.pending == 0
    assert not walls.frozen


async def test_stopping_takes_everything_back(
    clock: Clock, walls: Walls, lifetime: Lifetime
) -> None:
    """A sandbox that is closed is neither frozen nor ended again."""
    async with lifetime.call():
        lifetime.stop()
    await clock.pass_by(math.inf)
    assert (walls.ended, walls.changes, clock.pending) == ([], [], 0)


async def test_a_sandbox_that_died_is_not_frozen_with_noise(clock: Clock, walls: Walls) -> None:
    """Falling asleep fails silently: the next call tells its caller."""

    async def fail() -> None:
        raise SandboxDiedError("It is gone.")

    walls.freeze = fail
    lifetime = Lifetime(LIMITS, walls, walls.ended.append, clock)
    await clock.pass_by(10.1)
    walls.ended.append("died")
    with pytest.raises(SandboxDiedError):
        async with lifetime.call():
            pass
    lifetime.stop()
