"""Orders on each database and in memory: states, fences, turns, signs of life."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.samples import ENDED, NOON, STARTED, STRANGE

from turnout.core.events import ApprovalAsked, ApprovalGiven, Notice
from turnout.core.secrecy.redactor import Redactor
from turnout.core.service.orders import Answer, Later, Once, Order, OrderLimits, RunFilter
from turnout.core.tasks import Task
from turnout.core.tools import ToolCall
from turnout.errors import ConflictError, FullError, NotFoundError, StaleEpochError, StoreError
from turnout.store.orders import OrdersStore
from turnout.store.record import RecordStore
from turnout.testing.memory.orders import MemoryOrders
from turnout.testing.stores import MemoryRecordStore

LATER = NOON + timedelta(seconds=1)
ORDER = Order(Task(STRANGE, "/repo"), "red", "key", priority=3, labels=("a", STRANGE))
ASKED = ApprovalAsked(2, ToolCall("call-1", "run", "{}"), "run")


@pytest.fixture(params=["memory", "sql"])
def stores(request, database):
    """Return orders and records that belong together, of each kind."""
    if request.param == "memory":
        records = MemoryRecordStore()
        return MemoryOrders(records), records
    return OrdersStore(database), RecordStore(database)


@pytest.fixture
def orders(stores):
    """Return the orders alone."""
    return stores[0]


def first(standing):
    """Pick whatever comes first."""
    return standing.queued[0].run_id if standing.queued else None


async def begun(stores, run_id="run-1", order=ORDER):
    """Order a run, claim it and begin its record."""
    orders, records = stores
    await orders.submit(run_id, order, NOON)
    run = await orders.claim("w1", lambda _: run_id, NOON)
    await records.append(run_id, run.epoch, STARTED, LATER)
    return run


async def test_an_order_reads_back_as_it_was_given(orders):
    """With all that it holds, queued and begun by nobody."""
    order = replace(ORDER, policy="p", notify="https://example.org", limits=OrderLimits(1, 2.5, 3))
    submitted = await orders.submit("run-1", order, NOON)
    run = await orders.get("red", "run-1")
    assert submitted.created
    assert run == submitted.run
    assert (run.order, run.state, run.epoch, run.ordered_at) == (order, "queued", 0, NOON)
    assert (run.started_at, run.ended_at, run.outcome, run.worker) == (None, None, None, "")


async def test_a_run_of_another_project_does_not_exist(stores):
    """By every way of asking."""
    orders, _ = stores
    await orders.submit("run-1", ORDER, NOON)
    for asked in (
        orders.get("blue", "run-1"),
        orders.cancel("blue", "run-1", NOON),
        orders.answer("blue", "run-1", Answer(True, "me"), NOON),
        orders.get("red", "run-2"),
    ):
        with pytest.raises(NotFoundError):
            await asked
    assert (await orders.page("blue", RunFilter(), before=None, limit=9)).runs == ()


async def test_fifty_intakes_under_one_key_are_one_run(orders):
    """The first makes it, the others are told of it; another request is a conflict."""
    once = Once("k", "digest")
    assert await orders.made("red", once) is None
    many = [orders.submit(f"run-{n}", ORDER, NOON, once) for n in range(50)]
    made = await asyncio.gather(*many)
    assert [each.created for each in made].count(True) == 1
    assert len({each.run.run_id for each in made}) == 1
    with pytest.raises(ConflictError):
        await orders.submit("run-x", ORDER, NOON, Once("k", "other"))
    with pytest.raises(ConflictError):
        await orders.made("red", Once("k", "other"))
    assert await orders.made("red", once) == made[0].run
    assert await orders.made("blue", once) is None
    other = await orders.submit("run-y", replace(ORDER, project="blue"), NOON, once)
    assert other.created


async def test_runs_are_listed_newest_first_in_pages(orders):
    """Filtered by state, label and repository; each run on exactly one page."""
    for n in range(5):
        labels = ("even",) if n % 2 == 0 else ("Even",)
        task = Task("x", f"/repo-{n}")
        await orders.submit(f"run-{n}", replace(ORDER, task=task, labels=labels), NOON)
    page = await orders.page("red", RunFilter(), before=None, limit=3)
    rest = await orders.page("red", RunFilter(), before=page.before, limit=3)
    assert [r.run_id for r in (*page.runs, *rest.runs)] == [f"run-{n}" for n in (4, 3, 2, 1, 0)]
    assert rest.before is None
    for wanted, found in (
        (RunFilter(label="even"), ["run-4", "run-2", "run-0"]),
        (RunFilter(repository="/repo-1"), ["run-1"]),
        (RunFilter(states=("running", "ended")), []),
        (RunFilter(outcome="failed"), []),
        (RunFilter(verdict="resolved"), []),
    ):
        page = await orders.page("red", wanted, before=None, limit=9)
        assert [run.run_id for run in page.runs] == found


async def test_each_run_is_claimed_by_one_worker(orders):
    """However many ask at once; the turn is decided on what waits and what is worked on."""
    for n in range(6):
        await orders.submit(f"run-{n}", ORDER, NOON)
    claims = await asyncio.gather(*(orders.claim(f"w{n}", first, NOON) for n in range(9)))
    got = [run for run in claims if run is not None]
    assert sorted(run.run_id for run in got) == [f"run-{n}" for n in range(6)]
    assert {run.epoch for run in got} == {1}
    assert {run.state for run in got} == {"running"}


async def test_what_decides_a_turn_is_in_order(orders):
    """Of a project first the highest priority, then the oldest; last served projects last."""
    for n, (project, priority) in enumerate([("red", 0), ("red", 5), ("blue", 0), ("red", 5)]):
        task = Task("x", f"/repo-{n}")
        order = replace(ORDER, project=project, priority=priority, task=task)
        await orders.submit(f"run-{n}", order, NOON)
    seen = []

    def watch(standing):
        seen.append(standing)
        return standing.queued[-1].run_id if standing.queued else None

    await orders.claim("w", watch, NOON)
    await orders.claim("w", lambda _: "run-2", LATER)
    await orders.claim("w", watch, LATER)
    assert [each.run_id for each in seen[0].queued] == ["run-2", "run-1", "run-3", "run-0"]
    assert seen[1].served == ("red", "blue")
    assert {(each.run_id, each.repository) for each in seen[1].running} == {
        ("run-0", "/repo-0"),
        ("run-2", "/repo-2"),
    }


async def test_a_released_run_is_claimed_under_a_new_epoch(stores):
    """What the earlier segment would write is refused, and it can neither release nor wait."""
    orders, records = stores
    run = await begun(stores)
    await orders.release("run-1", run.epoch)
    again = await orders.claim("w2", first, LATER)
    assert again.epoch == run.epoch + 1
    with pytest.raises(StaleEpochError):
        await records.append("run-1", run.epoch, Notice("zombie"), LATER)
    await orders.release("run-1", run.epoch)
    await orders.wait("run-1", run.epoch, ASKED)
    now = await orders.get("red", "run-1")
    assert (now.state, now.worker, now.epoch) == ("running", "w2", again.epoch)


async def test_the_record_of_a_run_begins_with_its_first_segment(stores):
    """Until then it is in no list of records; the commit is known from then on."""
    orders, records = stores
    await orders.submit("run-1", ORDER, NOON)
    assert await records.rows() == ()
    assert await records.entries("run-1") == ()
    run = await orders.claim("w1", first, NOON)
    entry = await records.append("run-1", run.epoch, STARTED, LATER)
    assert entry.seq == 1
    (row,) = await records.rows()
    assert (row.base_commit, row.started_at, row.state) == ("c" * 40, LATER, "running")


async def test_the_end_on_record_is_the_end_of_the_run(stores):
    """In one commit, with its outcome."""
    orders, records = stores
    run = await begun(stores)
    await records.append("run-1", run.epoch, ENDED, LATER)
    ended = await orders.get("red", "run-1")
    assert (ended.state, ended.outcome, ended.ended_at) == ("ended", ENDED.outcome, LATER)
    await orders.release("run-1", run.epoch)
    assert (await orders.get("red", "run-1")).state == "ended"


async def test_events_are_committed_all_or_none(stores):
    """A result and the state it left belong together."""
    _, records = stores
    run = await begun(stores)
    entries = await records.append_all("run-1", run.epoch, (Notice("a"), Notice("b")), LATER)
    assert [entry.seq for entry in entries] == [2, 3]
    with pytest.raises(StaleEpochError):
        await records.append_all("run-1", run.epoch + 1, (Notice("c"), Notice("d")), LATER)
    assert len(await records.entries("run-1")) == 3


async def test_an_answer_is_on_record_and_queues_the_run(stores):
    """Exactly once, and only for the call that is asked about."""
    orders, _ = stores
    run = await begun(stores)
    await orders.wait("run-1", run.epoch, ASKED)
    waiting = await orders.get("red", "run-1")
    assert (waiting.state, waiting.waits_for, waiting.worker) == ("waiting", ASKED, "")
    with pytest.raises(ConflictError, match=r"on call call-1, not on call-0\."):
        await orders.answer("red", "run-1", Answer(True, "me", call_id="call-0"), LATER)
    entry = await orders.answer("red", "run-1", Answer(False, "me", "no", "call-1"), LATER)
    assert entry.event == ApprovalGiven(2, "call-1", False, "me", "no")
    assert (await orders.get("red", "run-1")).state == "queued"
    with pytest.raises(ConflictError):
        await orders.answer("red", "run-1", Answer(True, "me"), LATER)


async def test_cancelling_ends_at_once_what_nobody_works_on(stores):
    """Begun or not; a run under way is only asked, one that has ended stays as it is."""
    orders, records = stores
    await orders.submit("run-0", ORDER, NOON)
    fresh = await orders.cancel("red", "run-0", LATER)
    assert (fresh.state, fresh.outcome, fresh.ended_at) == ("ended", "cancelled", LATER)
    run = await begun(stores)
    asked = await orders.cancel("red", "run-1", LATER, "ann")
    assert (asked.state, asked.cancel_asked) == ("running", True)
    assert asked.order.later.cancelled_by == "ann"
    assert await orders.asked_to_cancel("w1") == ("run-1",)
    assert await orders.asked_to_cancel("w2") == ()
    await orders.release("run-1", run.epoch)
    ended = await orders.cancel("red", "run-1", LATER, "bob")
    assert (ended.state, ended.outcome) == ("ended", "cancelled")
    assert ended.order.later.cancelled_by == "ann"
    assert (await records.entries("run-1"))[-1].event.outcome == "cancelled"
    assert await orders.cancel("red", "run-1", LATER) == ended
    with pytest.raises(StoreError):
        await records.append("run-0", 0, STARTED, LATER)


async def test_a_run_that_was_cancelled_waits_for_nobody(stores):
    """The wish came while its worker went to ask a person: the next one ends it."""
    orders, _ = stores
    run = await begun(stores)
    await orders.cancel("red", "run-1", LATER, "ann")
    await orders.wait("run-1", run.epoch, ASKED)
    queued = await orders.get("red", "run-1")
    assert (queued.state, queued.waits_for, queued.cancel_asked) == ("queued", None, True)
    with pytest.raises(ConflictError):
        await orders.answer("red", "run-1", Answer(True, "me"), LATER)
    again = await orders.claim("w2", first, LATER)
    assert again.run_id == "run-1"


async def test_runs_are_found_by_words_of_their_task(orders):
    """Whatever their case and signs, and by the beginning of their id."""
    for run_id, prompt in (
        ("run-1", "Mend the Parser"),
        ("run-2", r"100% of a\b_c"),
        ("x-3", "it"),
    ):
        await orders.submit(run_id, replace(ORDER, task=Task(prompt, "/repo")), NOON)

    async def found(words):
        page = await orders.page("red", RunFilter(words=words), before=None, limit=9)
        return [run.run_id for run in page.runs]

    assert await found("parser") == await found("the PARS") == ["run-1"]
    assert await found("parser mend") == await found(" the\tmend the ") == ["run-1"]
    assert await found("parser 100%") == []
    assert await found("%") == await found("a\\b") == await found("b_c") == ["run-2"]
    assert await found("x-") == ["x-3"]
    assert await found("_") == ["run-2"]
    assert await found("") == ["x-3", "run-2", "run-1"]


async def test_runs_are_found_by_what_people_copy_of_their_ids(orders):
    """Whole, as a branch, without what all begin with, or the end of it; no word means a middle."""
    for run_id in ("run-842f3ae185e4", "run-cc936c6e5bfd"):
        await orders.submit(run_id, replace(ORDER, task=Task("Mend it", "/repo")), NOON)

    async def found(words):
        page = await orders.page("red", RunFilter(words=words), before=None, limit=9)
        return [run.run_id for run in page.runs]

    for said in ("run-842f3ae185e4", "RUN-842F", "842f", "842f3ae185e4", "85e4", "mend 842f"):
        assert await found(said) == ["run-842f3ae185e4"], said
    assert await found("turnout/run-cc936c6e5bfd") == ["run-cc936c6e5bfd"]
    for nothing in ("3ae1", "e4", "cc9", "842f cc93"):
        assert await found(nothing) == [], nothing
    assert await found(" ".join(["mend"] * 1_000)) == []
    assert len(await found(" ".join(["mend"] * 32))) == 2


async def test_a_diff_may_be_published_later(stores):
    """After the end of its run, once, by its own project."""
    orders, records = stores
    run = await begun(stores)
    with pytest.raises(ConflictError, match="has not ended"):
        await orders.publish("red", "run-1", "branch", LATER)
    await records.append("run-1", run.epoch, ENDED, LATER)
    with pytest.raises(NotFoundError):
        await orders.publish("blue", "run-1", "branch", LATER)
    asked = await orders.publish("red", "run-1", "branch", LATER)
    assert asked.order == replace(ORDER, later=Later(publish="branch"))
    assert asked.order.publishes == "branch"


async def test_runs_of_workers_that_show_no_life_are_queued(stores):
    """Those of living ones and of the one that asks are left alone."""
    orders, _ = stores
    for n, worker in enumerate(("dead", "alive", "asker")):
        await orders.submit(f"run-{n}", ORDER, NOON)
        await orders.claim(worker, first, NOON)
    await orders.beat("alive")
    assert await orders.rescue(stale=60.0, asker="asker") == ("run-0",)
    states = [(await orders.get("red", f"run-{n}")).state for n in range(3)]
    assert states == ["queued", "running", "running"]
    assert await orders.rescue(stale=-60.0, asker="asker") == ("run-1",)


async def test_a_worker_that_leaves_gives_its_runs_back(stores):
    """At once."""
    orders, _ = stores
    await orders.submit("run-1", ORDER, NOON)
    await orders.beat("w1")
    await orders.claim("w1", first, NOON)
    await orders.leave("w1")
    assert (await orders.get("red", "run-1")).state == "queued"


async def test_so_many_runs_of_a_project_wait_and_no_more(database):
    """Another project has its own room; what was ordered before is found all the same."""
    records = MemoryRecordStore()
    for store in (
        MemoryOrders(records, most_queued=2),
        OrdersStore(database, most_queued=2),
    ):
        once = Once("key", "digest")
        await store.submit("run-1", ORDER, NOON, once)
        await store.submit("run-2", ORDER, NOON)
        with pytest.raises(FullError, match="2 runs of project red"):
            await store.submit("run-3", ORDER, NOON)
        assert not (await store.submit("run-4", ORDER, NOON, once)).created
        await store.submit("run-5", replace(ORDER, project="blue"), NOON)
        await store.claim("w", lambda _: "run-1", NOON)
        await store.submit("run-3", ORDER, NOON)


async def test_secrets_of_the_process_come_on_no_record(database):
    """Not in the order, in no event, and not in the note of a decision."""
    redactor = Redactor({"LLM_API_KEY": "sk-0123456789"})
    orders, records = OrdersStore(database, redactor=redactor), RecordStore(database, redactor)
    task = Task("Use sk-0123456789.", "/repo", test_command="K=sk-0123456789 make test")
    run = await begun((orders, records), order=Order(task, "red", "key"))
    added = await records.append("run-1", run.epoch, Notice("It is sk-0123456789."), LATER)
    await orders.wait("run-1", run.epoch, ASKED)
    await orders.answer("red", "run-1", Answer(False, "ann", "Not with sk-0123456789."), LATER)
    entries = await records.entries("run-1")
    assert added in entries
    assert [entries[-2].event.text, entries[-1].event.note] == [
        "It is [LLM_API_KEY].",
        "Not with [LLM_API_KEY].",
    ]
    kept = (await orders.get("red", "run-1")).order.task
    assert (kept.prompt, kept.test_command) == ("Use [LLM_API_KEY].", "K=[LLM_API_KEY] make test")
