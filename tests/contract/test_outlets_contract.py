"""What leaves the service when runs change, kept in step with them on each database."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.samples import ENDED, NOON, STARTED

from turnout.core.events import ApprovalAsked, Reviewed
from turnout.core.govern.happenings import run_published
from turnout.core.govern.webhooks import Webhook
from turnout.core.service.orders import Order
from turnout.core.service.publications import Publication
from turnout.core.service.retention import Retention
from turnout.core.tasks import ReviewAsk, Task
from turnout.core.tools import ToolCall
from turnout.errors import ConflictError
from turnout.store.happenings import HappeningsStore
from turnout.store.notifications import NotificationsStore
from turnout.store.orders import OrdersStore
from turnout.store.publications import PublicationsStore
from turnout.store.record import RecordStore
from turnout.store.retention import RetentionStore
from turnout.testing.clock import FrozenClock

URL = "https://hooks.example.org/a/secret/path"
ORDER = Order(Task("Mend it", "shop"), "red", "key", notify=URL)
ASKED = ApprovalAsked(2, ToolCall("call-1", "run", "{}"), "run")
LATER = NOON + timedelta(seconds=1)
OLDEST = NOON - timedelta(days=3)


@pytest.fixture
def orders(any_database):
    """Return the orders of an empty database."""
    return OrdersStore(any_database)


@pytest.fixture
def records(any_database):
    """Return the records beside them."""
    return RecordStore(any_database)


@pytest.fixture
def notifications(any_database):
    """Return what the addresses of orders have still to be told."""
    return NotificationsStore(
        any_database, lambda target, project, url: Webhook(target, url, "S", project=project)
    )


@pytest.fixture
def publications(any_database):
    """Return what becomes of diffs."""
    return PublicationsStore(any_database)


async def begun(orders, run_id="run-1", order=ORDER):
    """Order a run and claim it."""
    await orders.submit(run_id, order, NOON)
    return await orders.claim("w1", lambda _: run_id, NOON)


async def due(notifications, now=LATER):
    """Claim what is due, and return to whom it goes and what it says."""
    claimed = await notifications.claim(now, limit=9, seconds=60)
    return [(one.webhook.url, one.happening.kind, one.happening.subject) for one in claimed]


async def test_every_change_of_a_run_is_told_in_its_own_transaction(
    orders, records, notifications, any_database
):
    """Each once: the address that the order names, and whoever asks what happened."""
    run = await begun(orders)
    await records.append("run-1", run.epoch, STARTED, NOON)
    await records.append("run-1", run.epoch, ASKED, NOON)
    await orders.wait("run-1", run.epoch, ASKED)
    await orders.cancel("red", "run-1", LATER)
    kinds = ["run.started", "run.waiting", "run.ended"]
    assert await due(notifications) == [(URL, kind, "run-1") for kind in kinds]
    happened = await HappeningsStore(any_database).newest(limit=9)
    assert [one.kind for one in reversed(happened)] == kinds
    assert "cancelled" in happened[0].text


async def test_a_run_that_is_claimed_again_before_it_began_is_told_once(orders, notifications):
    """Its first worker died at once."""
    run = await begun(orders)
    await orders.release("run-1", run.epoch)
    await orders.claim("w2", lambda _: "run-1", LATER)
    assert len(await due(notifications)) == 1


async def test_the_end_of_a_run_is_told_with_its_last_event(orders, records, notifications):
    """And of one that nobody began, with its cancellation."""
    run = await begun(orders)
    await records.append("run-1", run.epoch, STARTED, NOON)
    await records.append("run-1", run.epoch, ENDED, LATER)
    await orders.submit("run-2", ORDER, NOON)
    await orders.cancel("red", "run-2", LATER)
    told = await due(notifications)
    assert [(kind, run) for _, kind, run in told] == [
        ("run.started", "run-1"),
        ("run.ended", "run-1"),
        ("run.ended", "run-2"),
    ]


async def test_the_end_of_a_review_is_told_with_its_decision(orders, records, any_database):
    """It has no verdict of tests."""
    task = replace(ORDER.task, review=ReviewAsk(b"x"))
    run = await begun(orders, order=replace(ORDER, task=task))
    review = Reviewed(True, "It breaks.", decision="block")
    for event in (STARTED, review, ENDED):
        await records.append("run-1", run.epoch, event, LATER)
    (newest,) = await HappeningsStore(any_database).newest(limit=1)
    assert newest.text.endswith(f"has ended: {ENDED.outcome}, decision block.")


async def test_runs_that_name_no_address_tell_none(orders, records, notifications):
    """Nor does one that a command works on itself."""
    await begun(orders, order=replace(ORDER, notify=None))
    await records.begin("run-2", STARTED, NOON)
    await records.append("run-2", 1, ENDED, LATER)
    assert await due(notifications) == []


async def test_what_was_claimed_is_nobody_elses_until_its_time_is_over(orders, notifications):
    """A sender that died leaves it to the next one; what was taken is gone."""
    await begun(orders)
    (one,) = await notifications.claim(LATER, limit=9, seconds=60)
    assert await due(notifications, LATER + timedelta(seconds=59)) == []
    assert len(await due(notifications, LATER + timedelta(seconds=60))) == 1
    await notifications.delivered(one, LATER)
    assert await due(notifications, LATER + timedelta(days=1)) == []


async def test_an_address_that_takes_nothing_holds_back_all_that_it_gets(orders, notifications):
    """Of its project, until its time has come; other projects go on."""
    await begun(orders)
    (failing,) = await notifications.claim(NOON, limit=9, seconds=60)
    again_at = LATER + timedelta(minutes=5)
    await notifications.failed(failing, "why", LATER, again_at=again_at, oldest=OLDEST)
    await orders.submit("run-2", ORDER, LATER)
    await orders.cancel("red", "run-2", LATER)
    await begun(orders, "run-3", replace(ORDER, project="blue"))
    assert [run for _, _, run in await due(notifications)] == ["run-3"]
    claimed = await notifications.claim(again_at, limit=9, seconds=600)
    found = [(one.happening.subject, one.failures) for one in claimed]
    assert sorted(found) == [("run-1", 1), ("run-2", 1), ("run-3", 0)]
    await begun(orders, "run-4")
    assert [run for _, _, run in await due(notifications, again_at)] == ["run-4"]


async def test_what_an_address_has_still_to_be_told_is_not_forgotten(
    orders, notifications, any_database
):
    """However old it is; once it was taken it goes as everything does."""
    await begun(orders)
    keeping = RetentionStore(any_database, FrozenClock(NOON + timedelta(days=30)))
    policy = Retention(events=timedelta(days=7))
    assert (await keeping.enforce(policy)).events == 0
    (one,) = await notifications.claim(LATER, limit=9, seconds=60)
    await notifications.delivered(one, LATER)
    assert (await keeping.enforce(policy)).events == 1


async def test_what_is_too_old_is_given_up(orders, notifications):
    """It is no news any more."""
    await begun(orders)
    (failing,) = await notifications.claim(NOON, limit=9, seconds=60)
    await notifications.failed(failing, "why", LATER, again_at=LATER, oldest=LATER)
    assert await due(notifications, LATER + timedelta(days=1)) == []


async def test_a_publication_is_due_once_its_run_has_ended(orders, records, publications):
    """It is there from the order on, in one transaction with it."""
    run = await begun(orders, order=replace(ORDER, publish="draft"))
    await records.append("run-1", run.epoch, STARTED, NOON)
    await begun(orders, "run-2")
    assert await publications.claim(LATER, limit=9, seconds=60) == ()
    await records.append("run-1", run.epoch, ENDED, LATER)
    expected = Publication("run-1", "red", NOON)
    assert await publications.claim(LATER, limit=9, seconds=60) == [expected]
    assert await publications.claim(LATER, limit=9, seconds=60) == ()
    later = LATER + timedelta(seconds=60)
    assert len(await publications.claim(later, limit=9, seconds=60)) == 1
    assert set(await publications.of(["run-1", "run-2"])) == {"run-1"}


async def test_a_publication_that_is_over_stays_as_it_is(
    orders, notifications, publications, any_database
):
    """Its end is told with it; a worker that was taken for dead changes nothing."""
    await orders.submit("run-1", replace(ORDER, publish="branch"), NOON)
    run = await orders.cancel("red", "run-1", NOON)
    pushed = Publication("run-1", "red", NOON, branch="turnout/run-1", commit="c", tries=2)
    await publications.save(pushed)
    assert (await publications.of(["run-1"]))["run-1"] == pushed
    over = replace(pushed, state="done", link="https://git.example.org/1")
    await publications.save(over, run_published(LATER, run, over))
    await publications.save(replace(pushed, detail="late"), run_published(LATER, run, pushed))
    assert (await publications.of(["run-1"]))["run-1"] == over
    assert [kind for _, kind, _ in await due(notifications)] == ["run.ended", "run.published"]
    (told, _) = await HappeningsStore(any_database).newest(limit=2)
    assert "https://git.example.org/1" in told.text


async def test_what_is_asked_for_later_is_published_once(orders, records, publications):
    """It is due at once; a branch that is pushed may still become a draft, and then no more."""
    run = await begun(orders, order=Order(Task("Mend it", "shop"), "red", "key"))
    await records.append_all("run-1", run.epoch, (STARTED, ENDED), NOON)
    assert not await publications.claim(LATER, limit=9, seconds=60)
    await orders.publish("red", "run-1", "branch", NOON)
    (due,) = await publications.claim(LATER, limit=9, seconds=60)
    failed = replace(due, state="failed", detail="Away.", tries=3)
    await publications.save(failed)
    await orders.publish("red", "run-1", "branch", LATER)
    (again,) = await publications.claim(LATER, limit=9, seconds=60)
    assert (again.state, again.tries, again.detail) == ("due", 0, "")
    await publications.save(replace(again, state="done", branch="b", commit="c" * 40))
    with pytest.raises(ConflictError, match="published already"):
        await orders.publish("red", "run-1", "branch", LATER)
    await orders.publish("red", "run-1", "draft", LATER)
    (draft,) = await publications.claim(LATER, limit=9, seconds=60)
    await publications.save(replace(draft, state="done", link="https://hub.example.org/1"))
    with pytest.raises(ConflictError, match="published already"):
        await orders.publish("red", "run-1", "draft", LATER)
