"""How the service stands as a whole, on each database."""

from datetime import timedelta

import pytest
from tests.contract.test_orders_contract import ASKED, ORDER, begun
from tests.samples import ENDED, NOON

from turnout.store.orders import OrdersStore
from turnout.store.record import RecordStore
from turnout.store.watch import WatchStore


@pytest.fixture
def stores(any_database):
    """Return orders and records of a database."""
    return OrdersStore(any_database), RecordStore(any_database)


async def test_an_empty_service_stands_still(any_database):
    """Every state is there, so that no graph has holes."""
    stands = await WatchStore(any_database).standing(NOON, stale=5.0)
    assert stands.runs == {"queued": 0, "running": 0, "waiting": 0}
    assert (stands.oldest_queued, stands.workers) == (0.0, 0)


async def test_runs_count_in_their_state_until_they_have_ended(any_database, stores):
    """The queue is as old as its oldest run; workers count while they give signs of life."""
    orders, records = stores
    await orders.submit("run-0", ORDER, NOON + timedelta(seconds=7))
    await orders.submit("run-00", ORDER, NOON + timedelta(seconds=9))
    await begun(stores)
    waiting = await begun(stores, "run-2")
    await orders.wait("run-2", waiting.epoch, ASKED)
    ended = await begun(stores, "run-3")
    await records.append("run-3", ended.epoch, ENDED, NOON)
    await orders.beat("w1")
    watch = WatchStore(any_database)
    stands = await watch.standing(NOON + timedelta(seconds=10), stale=60.0)
    assert stands.runs == {"queued": 2, "running": 1, "waiting": 1}
    assert (stands.oldest_queued, stands.workers) == (3.0, 1)
    assert (await watch.standing(NOON, stale=-60.0)).workers == 0
