"""Containers that were started ahead."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from turnout.errors import SandboxUnavailableError
from turnout.sandbox.base import BaseRef, Limits
from turnout.sandbox.container.warm import Wanted, WarmShelf


def wanted(key: str) -> Wanted:
    """Return what containers of a base are made for."""
    return Wanted(BaseRef(key, "commit", ()), Limits())


class Fake:
    """A container that is both ends of itself."""

    def __init__(self) -> None:
        self.released = False
        self._ended: list[Callable[[], None]] = []

    def when_ended(self, callback: Callable[[], None]) -> None:
        """Keep what is called at the end."""
        self._ended.append(callback)

    def end(self, reason: str) -> None:
        """End it."""
        for callback in self._ended:
            callback()

    async def closed(self) -> None:
        """Wait for nothing."""

    async def release(self) -> None:
        """Note that it was removed."""
        self.released = True


class Yard:
    """Starts fakes, and can be told to fail."""

    def __init__(self) -> None:
        self.made: list[Fake] = []
        self.fails = False
        self.held = asyncio.Event()
        self.held.set()

    async def start(self, _: Wanted) -> tuple[Fake, Fake]:
        """Start one."""
        await self.held.wait()
        if self.fails:
            raise SandboxUnavailableError("No.")
        self.made.append(Fake())
        return self.made[-1], self.made[-1]


@pytest.fixture
def yard() -> Yard:
    """Return one without any container."""
    return Yard()


@pytest.fixture
async def shelf(yard: Yard) -> AsyncIterator[WarmShelf]:
    """Keep two each for the last two that were wanted."""
    made = WarmShelf(2, 2, yard.start)
    yield made
    await made.close()


async def test_the_first_comes_too_early(shelf: WarmShelf, yard: Yard) -> None:
    """Nobody knew that it would be wanted; from then on others are ready."""
    assert shelf.claim(wanted("a")) is None
    await shelf.filled(wanted("a"))
    assert len(yard.made) == 2
    assert shelf.claim(wanted("a")) is not None


async def test_each_is_given_away_once(shelf: WarmShelf, yard: Yard) -> None:
    """The next one gets another, and they are replaced meanwhile."""
    await shelf.filled(wanted("a"))
    taken = [shelf.claim(wanted("a")), shelf.claim(wanted("a"))]
    assert taken == [(yard.made[0], yard.made[0]), (yard.made[1], yard.made[1])]
    await shelf.filled(wanted("a"))
    assert len(yard.made) == 4
    assert not any(each.released for each in yard.made)


async def test_those_of_another_base_or_other_limits_do_not_fit(shelf: WarmShelf) -> None:
    """What a container is made for is all that it can do."""
    await shelf.filled(wanted("a"))
    assert shelf.claim(wanted("b")) is None
    assert shelf.claim(Wanted(wanted("a").base, Limits(pids=7))) is None


async def test_one_that_died_meanwhile_is_passed_over(shelf: WarmShelf, yard: Yard) -> None:
    """And removed."""
    await shelf.filled(wanted("a"))
    dead, alive = yard.made
    dead.end("killed")
    assert shelf.claim(wanted("a")) == (alive, alive)
    await shelf.close()
    assert dead.released
    assert not alive.released


async def test_what_was_not_wanted_for_longest_goes(shelf: WarmShelf, yard: Yard) -> None:
    """So that not every base ever used holds containers."""
    for key in ("a", "b", "c"):
        await shelf.filled(wanted(key))
    assert shelf.claim(wanted("c")) is not None
    await shelf.close()
    assert [each.released for each in yard.made[:2]] == [True, True]


async def test_one_that_cannot_be_started_is_not_tried_for_ever(
    shelf: WarmShelf, yard: Yard
) -> None:
    """Whoever wants one starts it himself, and learns why not."""
    yard.fails = True
    await shelf.filled(wanted("a"))
    assert shelf.claim(wanted("a")) is None
    yard.fails = False
    await shelf.filled(wanted("a"))
    assert shelf.claim(wanted("a")) is not None


async def test_none_is_left_at_the_end(shelf: WarmShelf, yard: Yard) -> None:
    """Neither one that is ready nor one that is only being started."""
    await shelf.filled(wanted("a"))
    yard.held.clear()
    assert shelf.claim(wanted("b")) is None
    await asyncio.sleep(0)
    await shelf.close()
    yard.held.set()
    assert len(yard.made) == 2
    assert all(each.released for each in yard.made)
    assert shelf.claim(wanted("a")) is None
    await shelf.filled(wanted("a"))
    assert len(yard.made) == 2


async def test_without_a_number_there_are_none(yard: Yard) -> None:
    """Warm containers cost memory, so nobody has them who did not ask."""
    shelf = WarmShelf(0, 2, yard.start)
    assert shelf.claim(wanted("a")) is None
    await shelf.filled(wanted("a"))
    await shelf.close()
    assert not yard.made
