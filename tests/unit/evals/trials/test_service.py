"""Trials' runs on the durable service: one for each key, whoever asks and how often."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tests.unit.evals.trials.parts import AUTO, MODEL
from tests.unit.runs.durable.parts import House

from turnout.agent.base import AgentConfig
from turnout.core.clock import SystemClock
from turnout.core.events import Entry, ModelCallIntended, RunResumed, StepStarted, ToolCallDone
from turnout.core.ids import RunId
from turnout.core.messages import SystemMessage, UserMessage
from turnout.core.service.orders import OrderLimits
from turnout.core.service.turns import Claimable, Standing
from turnout.core.tasks import Task
from turnout.evals.trials.service import Away, Nudges, ServiceRuns, Wanted, project_of
from turnout.runs.durable.desk import Desk
from turnout.runs.durable.engine import Pace, TaskEngine, Worker
from turnout.runs.durable.following import Following
from turnout.runs.durable.turns import Turns

TASK = Task("Count to 3.", "shop", surface="files")
PACE = Pace(beat=0.05, look=0.02, stale=1.0, grace=0.1)


class Shop:
    """A service of fakes, whose processes come and go."""

    def __init__(self, *, approvals=()):
        self.house = House(config=AgentConfig(approvals=approvals))
        self.clock = SystemClock()

    @asynccontextmanager
    async def process(self, name="w"):
        """Let one process work on what it orders, until the block ends."""
        house, wanted = self.house, Wanted()
        async with Following(house.orders, house.records, self.clock) as following:
            house.on_entry = lambda entry: following.wake(entry.run_id)
            work = house.segments().work
            post = Worker(name, 2, alone=True, pace=PACE)
            async with TaskEngine(
                house.orders, house.records, work, wanted.pick, self.clock, post
            ) as engine:
                desk = Desk(house.orders, house.records, engine, following, self.clock)
                yield ServiceRuns(desk, engine, wanted, OrderLimits(), self.clock)

    async def work(self, key="key", arm=AUTO, show=lambda _: None, task=TASK):
        """Have a task worked on by a process that ends with it."""
        async with asyncio.timeout(20), self.process() as runs:
            return await runs.work(arm, task, key, show)


async def test_a_key_stands_for_one_run():
    """Another process that asks with it gets the same result, and nothing is run again."""
    shop = Shop()
    first = await shop.work()
    asked = len(shop.house.model.asked)
    shown = []
    again = await shop.work(show=shown.append)
    assert first == again
    assert len(shop.house.model.asked) == asked
    assert first.result.outcome == "answered"
    assert len(shown) == len(await shop.house.records.entries(first.result.run_id))


async def test_another_arm_or_key_is_another_run():
    """Of a project of its own; the same key stands for it wherever its repository lies now."""
    shop = Shop()
    runs = [await shop.work(), await shop.work("other"), await shop.work(arm=MODEL)]
    assert len({each.result.run_id for each in runs}) == 3
    assert project_of(AUTO) != project_of(MODEL)
    moved = await shop.work(task=Task("Count to 3.", "elsewhere", surface="files"))
    assert moved == runs[0]


async def test_a_process_that_was_given_up_is_followed_by_one_that_goes_on():
    """With the very run that was under way: what its model has answered is not asked again."""
    shop = Shop()
    entered = asyncio.Event()

    def show(entry):
        if isinstance(entry.event, ToolCallDone):
            entered.set()

    trial = asyncio.create_task(shop.work(show=show))
    async with asyncio.timeout(20):
        await entered.wait()
    trial.cancel()
    await asyncio.gather(trial, return_exceptions=True)
    worked = await shop.work()
    assert worked.result.outcome == "answered"
    assert len(shop.house.model.asked) == len(set(shop.house.model.asked))
    answers = [call.idempotency_key for call in worked.result.calls]
    assert len(answers) == len(set(answers))


async def test_a_call_that_waits_for_a_person_is_refused():
    """Nobody is there; the run goes on without it."""
    shop = Shop(approvals=("write_file",))
    worked = await shop.work()
    assert worked.result.consents
    assert {consent.given.by for consent in worked.result.consents} == {"evaluation"}
    assert not any(consent.given.allowed for consent in worked.result.consents)


def test_a_process_works_on_what_it_has_ordered_alone():
    """And workers of the service on nothing that an evaluation has ordered."""
    ours = Claimable(RunId("run-1"), project_of(AUTO), "shop", 0, 1)
    late = replace(ours, run_id=RunId("run-2"), number=2)
    theirs = replace(ours, run_id=RunId("run-3"), project="red", number=3)
    standing = Standing((late, ours, theirs), (), ())
    wanted = Wanted()
    assert wanted.pick(standing) is None
    wanted.runs.update({"run-1", "run-2"})
    assert wanted.pick(standing) == "run-1"
    assert Turns().pick(standing) == "run-3"


def entry(step, conversation, *messages, kind="act"):
    """Return an intent of a model call."""
    event = ModelCallIntended(step, kind, conversation, "k", "auto", messages)
    return Entry(RunId("run-1"), step, datetime(2026, 1, 1, tzinfo=UTC), event)


def test_what_a_model_had_to_be_told_again_is_counted():
    """Not the task that opens a conversation, and not what other steps are told."""
    nudges = Nudges()
    told = UserMessage("Go on.")
    for each in (
        entry(1, "plan", told, kind="plan"),
        entry(2, "main", SystemMessage("You"), told),
        entry(3, "main"),
        entry(4, "main", told),
        entry(5, "main", told, told),
        entry(6, "answer", told, kind="answer"),
    ):
        nudges.see(each)
    assert nudges.count == 2


def test_the_time_between_two_processes_is_nobodys_work():
    """A machine that was off for a night did not make the model slow."""
    away, begun = Away(), datetime(2026, 1, 1, tzinfo=UTC)
    events = (
        (0, StepStarted(1, "act", "latency")),
        (20, StepStarted(2, "act", "latency")),
        (28_820, RunResumed(2, "b")),
        (28_850, StepStarted(3, "act", "latency")),
        (28_910, RunResumed(3, "c")),
    )
    for number, (after, event) in enumerate(events, 1):
        away.see(Entry(RunId("run-1"), number, begun + timedelta(seconds=after), event))
    assert away.seconds == 28_860.0
