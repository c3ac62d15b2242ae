"""What runs took, on each database, beside what their records and receipts say."""

from dataclasses import replace

from tests.samples import NOON, STARTED, receipt

from turnout.core.events import Notice, StepStarted
from turnout.core.service.figures import RunFigures
from turnout.core.service.orders import Order
from turnout.core.tasks import Task
from turnout.store.figures import FiguresStore
from turnout.store.orders import OrdersStore
from turnout.store.receipts import ReceiptsStore
from turnout.store.record import RecordStore

ORDER = Order(Task("Fix it.", "shop"), "red", "ci")


async def begun(database, run_id, *events):
    """Order a run, and let these events happen."""
    orders = OrdersStore(database)
    await orders.submit(run_id, ORDER, NOON)
    run = await orders.claim("w", lambda _: run_id, NOON)
    await RecordStore(database).append_all(run_id, run.epoch, (STARTED, *events), NOON)
    return await orders.get("red", run_id)


async def test_steps_are_counted_by_the_record(database):
    """By the newest step that began, whatever a text pretends to be."""
    feigned = Notice('{"step":99,"kind":"act","objective":"cost","type":"step_started"}')
    steps = (StepStarted(1, "plan", "quality"), StepStarted(2, "act", "latency"), feigned)
    one = await begun(database, "run-1", *steps)
    other = await begun(database, "run-2")
    found = await FiguresStore(database).of([one, other])
    assert (found["run-1"].steps, found["run-2"]) == (2, RunFigures())
    assert await FiguresStore(database).of([]) == {}


async def test_calls_are_counted_by_the_receipts_of_the_runs_own_key(database):
    """Models with most calls first; a call without a price is told apart."""
    run = await begun(database, "run-1")
    receipts, given = ReceiptsStore(database), receipt("req-1", session="run-1", key="ci")
    routing = replace(given.routing, model="other", cost_micros=None)
    await receipts.add(given)
    await receipts.add(receipt("req-2", session="run-1", key="ci"))
    await receipts.add(
        replace(given, request_id="req-3", routing=routing, cost_micros=None, repairs=("a", "b"))
    )
    await receipts.add(receipt("req-4", session="run-1", key="somebody"))
    found = (await FiguresStore(database).of([run]))["run-1"]
    assert found.models == ((given.routing.model, 2), ("other", 1))
    assert (found.cost, found.unpriced) == (2 * given.cost_micros, 1)
    assert found.input_tokens == 3 * given.usage.input_tokens
    assert await FiguresStore(database).repaired(run) == {"req-1": 1, "req-2": 1, "req-3": 2}
