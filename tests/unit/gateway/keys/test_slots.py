"""A slot is held while a request is under way, and never longer."""

import asyncio
from contextlib import ExitStack, aclosing, contextmanager, suppress

import pytest

from turnout.core.govern.keys import KeyLimits
from turnout.errors import GatewayError
from turnout.gateway.exchange import Caller
from turnout.gateway.keys.slots import Slots

FOUR = Caller("k", limits=KeyLimits(concurrency=4))


@contextmanager
def hold(slots, number, caller=FOUR):
    """Hold so many slots."""
    with ExitStack() as stack:
        for _ in range(number):
            stack.enter_context(slots.held(caller))
        yield


def test_a_key_without_a_limit_holds_nothing():
    """Nor is it counted."""
    slots = Slots()
    with hold(slots, 100, Caller("k")):
        assert slots.held_here == {}


def test_one_more_than_the_limit_is_refused():
    """429, to be tried again soon; other keys are not touched by it."""
    slots = Slots()
    with hold(slots, 4):
        with pytest.raises(GatewayError, match="4 requests under way") as caught, slots.held(FOUR):
            pass
        assert (caught.value.status, caught.value.code) == (429, "concurrency_limit")
        assert caught.value.retry_after == 1
        with hold(slots, 1, Caller("other", limits=KeyLimits(concurrency=1))):
            assert slots.held_here == {"k": 4, "other": 1}


@pytest.mark.cases
async def test_requests_that_end_in_any_way_give_their_slot_back():
    """Ten in a row under a limit of four: answered, failed, cut off, cancelled."""
    slots = Slots()

    async def stream():
        with slots.held(FOUR):
            yield 1
            yield 2

    async def stuck():
        with slots.held(FOUR):
            await asyncio.Event().wait()

    for _ in range(10):
        with slots.held(FOUR):
            pass
        with suppress(LookupError), slots.held(FOUR):
            raise LookupError
        async with aclosing(stream()) as pieces:
            await anext(pieces)
        task = asyncio.create_task(stuck())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
    assert slots.held_here == {}
