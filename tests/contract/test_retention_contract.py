"""What is older than is kept goes, whole, and nothing else."""

from datetime import timedelta

from sqlalchemy import delete, func, insert, select, update
from tests.samples import ENDED, NOON, STARTED, receipt

from turnout.core.events import ResourcesUsed
from turnout.core.govern.audit import Audited
from turnout.core.govern.happenings import deployment_unhealthy
from turnout.core.service.orders import Once, Order
from turnout.core.service.retention import Forgotten, Retention
from turnout.core.tasks import Task
from turnout.store.audit import AuditStore
from turnout.store.happenings import HappeningsStore
from turnout.store.orders import OrdersStore
from turnout.store.receipts import ReceiptsStore
from turnout.store.record import RecordStore
from turnout.store.retention import RetentionStore
from turnout.store.schema import deliveries, metadata, notifications, publications
from turnout.testing.clock import FrozenClock

WEEK = timedelta(days=7)
USED = ResourcesUsed(1.0, 1, 1, 1.0, 0.0)


class LaterClock(FrozenClock):
    """Eight days after noon; nobody waits."""

    def now(self):
        """Return the moment."""
        return NOON + timedelta(days=8)

    async def sleep(self, seconds):
        """Let it pass at once."""
        assert seconds < 1


async def rows_of(database, run_id):
    """Return how many rows each table has of a run."""

    def count(connection):
        tables = [table for table in metadata.sorted_tables if "run_id" in table.c]
        counted = select(func.count())
        return {
            t.name: connection.scalar(counted.select_from(t).where(t.c.run_id == run_id))
            for t in tables
        }

    return {name: n for name, n in (await database.read(count)).items() if n}


async def runs_of_each_kind(database):
    """Keep an old run, one that ended lately, one that goes on and one that was killed."""
    orders, records = OrdersStore(database), RecordStore(database)
    lately = NOON + timedelta(days=5)
    for name, end in (("run-old", NOON), ("run-new", lately), ("run-on", None)):
        order = Order(Task("Fix it.", "shop"), "red", "ci", labels=("a",))
        await orders.submit(name, order, NOON, Once(name, "digest"))
        run = await orders.claim("w", lambda _, name=name: name, NOON)
        events = (STARTED, USED) if end is None else (STARTED, USED, ENDED)
        await records.append_all(name, run.epoch, events, end or NOON)
    await records.begin("run-killed", STARTED, NOON)


async def test_a_run_goes_whole_and_only_when_it_is_over(database):
    """With its order, its labels, its record, its use of sandboxes and its idempotency key."""
    await runs_of_each_kind(database)
    assert {"runs", "events", "orders", "order_labels", "machine_use"} <= set(
        await rows_of(database, "run-old")
    )
    forgotten = await RetentionStore(database, LaterClock()).enforce(Retention(runs=WEEK))
    assert forgotten == Forgotten(runs=2)
    assert await rows_of(database, "run-old") == {}
    assert await rows_of(database, "run-killed") == {}
    for name in ("run-new", "run-on"):
        assert (await rows_of(database, name))["order_labels"] == 1
    again = Order(Task("Fix it.", "shop"), "red", "ci")
    submitted = await OrdersStore(database).submit("run-5", again, NOON, Once("run-old", "other"))
    assert submitted.created


async def test_a_run_of_which_something_is_due_outside_stays(database):
    """Until its branch is out, or given up, and all is told whom the order names."""
    orders, records = OrdersStore(database), RecordStore(database)
    wanted = (
        Order(Task("Fix it.", "shop"), "red", "ci", publish="branch"),
        Order(Task("Fix it.", "shop"), "red", "ci", notify="https://hook.example.org/"),
    )
    for name, order in zip(("run-branch", "run-told"), wanted, strict=True):
        await orders.submit(name, order, NOON)
        run = await orders.claim("w", lambda _, name=name: name, NOON)
        await records.append_all(name, run.epoch, (STARTED, ENDED), NOON)
    told = {
        "run_id": "run-told",
        "target": "t",
        "project": "red",
        "url": "https://hook.example.org/",
        "happening": "h-1",
        "at": NOON,
        "due_at": NOON,
        "failures": 1,
    }
    await database.write(lambda connection: connection.execute(insert(notifications), told))
    store, policy = RetentionStore(database, LaterClock()), Retention(runs=WEEK)
    assert (await store.enforce(policy)).runs == 0
    over = update(publications).values(state="failed")
    await database.write(lambda connection: connection.execute(over))
    assert (await store.enforce(policy)).runs == 1
    await database.write(lambda connection: connection.execute(delete(notifications)))
    assert (await store.enforce(policy)).runs == 1


async def test_by_default_nothing_goes(database):
    """Whoever wants less says so."""
    await runs_of_each_kind(database)
    assert await RetentionStore(database, LaterClock()).enforce(Retention()) == Forgotten()
    assert await rows_of(database, "run-old")


async def test_receipts_events_and_changes_go_by_their_age(database):
    """However many; an event that somebody is still to be told of stays."""
    await ReceiptsStore(database).add(receipt("req-1"))
    audit, happenings = AuditStore(database), HappeningsStore(database)
    await audit.add(Audited(NOON, "boss", "red", "create_key", "ci"))
    await audit.add(Audited(NOON + timedelta(days=2), "boss", "red", "revoke_key", "ci"))
    old = [deployment_unhealthy(NOON, f"p/{n}", "why") for n in range(502)]
    await happenings.record(old)
    waiting = {"webhook": "hook-1", "happening": old[0].id, "at": NOON, "due_at": NOON}
    await database.write(lambda connection: connection.execute(insert(deliveries), waiting))
    policy = Retention(receipts=WEEK, events=WEEK, audit=WEEK)
    forgotten = await RetentionStore(database, LaterClock()).enforce(policy)
    assert forgotten == Forgotten(receipts=1, events=501, audit=1)
    assert await happenings.newest(limit=10) == (old[0],)
