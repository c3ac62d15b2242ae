"""Records beside receipts on each database: put right once, and by nobody else's receipts."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.samples import ENDED, NOON, STARTED, receipt

from turnout.core.events import ResourcesUsed
from turnout.core.govern.usage import MachineFigures, UsageQuery
from turnout.core.money import Micros
from turnout.core.service.orders import Order
from turnout.core.tasks import Task
from turnout.errors import ConflictError, NotFoundError, StoreError
from turnout.runs.spend.reconcile import Reconciler
from turnout.store.orders import OrdersStore
from turnout.store.receipts import ReceiptsStore
from turnout.store.record import RecordStore
from turnout.store.spend import SpendStore
from turnout.store.usage import UsageStore
from turnout.testing.clock import FrozenClock

USED = ResourcesUsed(1.5, 64 << 20, 4096, 60.0, 30.0, 3_840.0, Micros(120))


@pytest.fixture
def reconciler(database):
    """Return one on stores of each kind."""
    clock = FrozenClock()
    return Reconciler(RecordStore(database), SpendStore(database, clock), clock)


async def worked_on(database, run_id, *events, project="red", key="ci"):
    """Order a run and put on record what became of it."""
    orders, records = OrdersStore(database), RecordStore(database)
    await orders.submit(run_id, Order(Task("Fix it.", "shop"), project, key), NOON)
    run = await orders.claim("w", lambda _: run_id, NOON)
    await records.append_all(run_id, run.epoch, (STARTED, *events), NOON)


async def test_a_record_is_put_right_once(database, reconciler):
    """After its end, by the receipts of its own key; then both agree."""
    await worked_on(database, "run-1", ENDED)
    receipts = ReceiptsStore(database)
    await receipts.add(receipt("req-1", session="run-1", key="ci"))
    await receipts.add(receipt("req-2", session="run-1", key="somebody"))
    cost = receipt().cost_micros
    shown = await reconciler.run("run-1", write=False)
    first = await reconciler.run("run-1", write=True)
    assert (shown.charged, shown.corrected, first.charged, first.corrected) == (
        cost,
        False,
        cost,
        True,
    )
    second = await reconciler.run("run-1", write=True)
    assert (second.agrees, second.corrected, second.recorded) == (True, False, cost)
    entries = await RecordStore(database).entries("run-1")
    assert [entry.event.type for entry in entries[-2:]] == ["run_ended", "spend_corrected"]


async def test_a_run_that_goes_on_is_shown_and_left_alone(database, reconciler):
    """A call may be paid and not yet on record."""
    await worked_on(database, "run-1")
    await ReceiptsStore(database).add(receipt("req-1", session="run-1", key="ci"))
    found = await reconciler.run("run-1", write=True)
    assert (found.agrees, found.ended, found.corrected) == (False, False, False)
    assert len(await RecordStore(database).entries("run-1")) == 1


async def test_of_two_that_correct_at_once_one_does(database, reconciler):
    """The other sees that the record has grown; nothing else may follow an end."""
    await worked_on(database, "run-1", ENDED)
    records, spend = RecordStore(database), SpendStore(database, FrozenClock())
    entries = await records.entries("run-1")
    found = await reconciler.run("run-1", write=False)
    await spend.correct(entries, found.correction())
    with pytest.raises(ConflictError, match="still grows"):
        await spend.correct(entries, found.correction())
    with pytest.raises(StoreError, match="has ended"):
        await records.append("run-1", 1, ENDED, NOON)


async def test_every_run_that_has_ended_is_compared(database, reconciler):
    """Those of commands too; those that nobody began, or that go on, are left out."""
    await worked_on(database, "run-1", ENDED)
    await worked_on(database, "run-2")
    records, orders = RecordStore(database), OrdersStore(database)
    await records.begin("run-3", STARTED, NOON)
    await records.append("run-3", 1, ENDED, NOON)
    await orders.submit("run-4", Order(Task("Fix it.", "shop"), "red", "ci"), NOON)
    await orders.cancel("red", "run-4", NOON)
    await ReceiptsStore(database).add(receipt("req-3", session="run-3", key="agent"))
    found = [each async for each in reconciler.all(write=True)]
    assert [(each.run_id, each.agrees) for each in found] == [("run-1", True), ("run-3", False)]
    with pytest.raises(NotFoundError, match="Nobody has begun"):
        await reconciler.run("run-4", write=True)


async def test_what_sandboxes_used_is_added_up_by_who_ordered(database):
    """Beside what model calls used, by the same key, project, session and time."""
    await worked_on(database, "run-1", USED, replace(USED, cost=None, cpu_seconds=None))
    await worked_on(database, "run-2", USED, project="blue", key="other")
    usage = UsageStore(database)

    async def machines(**asked) -> MachineFigures:
        return (await usage.usage(UsageQuery(**asked))).machines

    assert await machines(project="red") == MachineFigures(2, 1.5, 7_680.0, 64 << 20, Micros(120))
    assert (await machines()).segments == 3
    assert (await machines(key="other")).cost == 120
    assert (await machines(session="run-1")).segments == 2
    assert await machines(since=NOON + timedelta(seconds=1)) == MachineFigures()
