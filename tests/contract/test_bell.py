"""Workers of other machines hear at once that a run is queued."""

import asyncio
import time

from tests.databases import opened, url_of
from tests.samples import NOON

from turnout.core.ids import RunId
from turnout.store.bell import listening
from turnout.store.orders import OrdersStore
from turnout.testing.fleet.counting import counting_order

RUN = RunId("run-1")


async def test_whoever_listens_hears_that_a_run_is_queued(request, tmp_path):
    """When it is ordered and when it is given back, not when it is claimed; the end is prompt."""
    heard = asyncio.Queue()
    with url_of("postgresql", request, tmp_path) as url:
        async with opened(url) as ours, opened(url) as theirs:
            orders = OrdersStore(theirs)
            async with listening(ours, lambda: heard.put_nowait("ring")), asyncio.timeout(20):
                while heard.empty():  # It listens from some moment on.
                    await orders.leave("nobody")
                    await asyncio.sleep(0.05)
                await _quiet(heard)
                await orders.submit(RUN, counting_order(1), NOON)
                assert await heard.get() == "ring"
                run = await orders.claim("w", lambda _: RUN, NOON)
                await _quiet(heard)
                await orders.release(RUN, run.epoch)
                assert await heard.get() == "ring"
                ending = time.monotonic()
            assert time.monotonic() - ending < 0.9


async def test_on_sqlite_nobody_listens(request, tmp_path):
    """Its workers look for runs every second."""
    with url_of("sqlite", request, tmp_path) as url:
        async with opened(url) as database, listening(database, lambda: None):
            submitted = await OrdersStore(database).submit(RUN, counting_order(1), NOON)
    assert submitted.created


async def _quiet(heard):
    """Let what was rung before be heard, and nothing more."""
    await asyncio.sleep(0.1)
    while not heard.empty():
        heard.get_nowait()
