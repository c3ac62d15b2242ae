"""A run goes on from wherever its record ends, and comes to the same end."""

import asyncio
from dataclasses import replace

import pytest
from tests.unit.runs.durable.parts import ORDER, RUN, House, Remembering

from turnout.agent.base import AgentConfig
from turnout.core.events import (
    ApprovalAsked,
    CheckpointMade,
    ModelCallDone,
    ModelCallIntended,
    PatchMade,
    ResourcesUsed,
    RunEnded,
    RunResumed,
    RunStarted,
    StepStarted,
    TestsRan,
    ToolCallDone,
    ToolCallIntended,
)
from turnout.core.service.orders import Answer, Order
from turnout.core.tasks import ReviewAsk, Task
from turnout.errors import RepositoryError, StaleEpochError, StoreError
from turnout.runs.stop import Stop
from turnout.runs.summary import fold
from turnout.runs.worker import Effort
from turnout.testing.sandbox.driver import ScriptedDriver
from turnout.testing.stores import MemoryRecordStore

HOUSES = {
    "plain": House,
    "two attempts": lambda: House(effort=Effort(attempts=2), model=Remembering(lazy=True)),
    "attempts and a review": lambda: House(effort=Effort(attempts=2, review="annotate")),
}


def kinds(events):
    """Return what kinds of events there are, but for how a run is handed over."""
    left_out = {"run_resumed", "notice", "resources_used"}
    return [event.type for event in events if event.type not in left_out]


async def test_a_run_in_one_segment_is_on_record_from_start_to_end():
    """Its order is shown as it was given; each writing call has its checkpoint beside it."""
    house = House()
    await house.order()
    run = await house.segment()
    events = await house.events()
    assert (run.state, run.outcome, run.verdict) == ("ended", "answered", "no_regression")
    assert events[0] == RunStarted(ORDER.task, "a" * 40, "loop")
    written = [at for at, event in enumerate(events) if isinstance(event, ToolCallDone)]
    assert len(written) == 3
    assert all(isinstance(events[at + 1], CheckpointMade) for at in written)
    assert house.driver.prepared[0].repository == "/repositories/shop"


@pytest.mark.parametrize("kind", HOUSES)
async def test_a_run_cut_anywhere_comes_to_the_same_end(kind):
    """With the same patch; no answer is paid for twice, no call made twice, no test run again."""
    house = HOUSES[kind]()
    await house.order()
    await house.segment()
    whole = await house.events()
    asked = list(house.model.asked)
    patch = fold(await house.records.entries(RUN)).patch
    for at in range(len(whole)):
        if isinstance(whole[at], CheckpointMade):
            continue  # It is committed together with the event before it.
        other = await house.cut(at)
        run = await other.segment()
        events = await other.events()
        result = fold(await other.records.entries(RUN))
        assert (run.state, run.outcome, run.verdict) == ("ended", "answered", "no_regression")
        assert set(result.patch.files) == set(patch.files)
        answers = [e.idempotency_key for e in events if isinstance(e, ModelCallDone)]
        assert len(answers) == len(set(answers))
        calls = [e.call.id for e in events if isinstance(e, ToolCallIntended)]
        results = [e.result.call_id for e in events if isinstance(e, ToolCallDone)]
        assert sorted(calls) == sorted(results) == sorted(set(results))
        interrupted = any(
            isinstance(e, ToolCallDone) and e.result.content.startswith("Interrupted")
            for e in events
        )
        if not interrupted:
            assert kinds(events) == kinds(whole)
            intended = {e.idempotency_key for e in whole[:at] if isinstance(e, ModelCallIntended)}
            assert {*other.model.asked, *intended} == set(asked)
            assert not intended & set(other.model.asked)
        before = sum(isinstance(event, TestsRan) for event in whole[:at])
        assert other.suite.runs == sum(isinstance(e, TestsRan) for e in whole) - before


async def test_a_review_cut_anywhere_comes_to_the_same_decision():
    """No answer is paid for twice, and what was read is not read again."""
    change = ReviewAsk(b"--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a = 1\n+a = 2\n")
    wanted = Order(Task("Look.", "shop", surface="review", review=change), "red", "key")
    house = House(wanted=wanted, model=Remembering(reads=True))
    await house.order()
    await house.segment()
    whole = await house.events()
    assert kinds(whole).count("tool_call_done") == 2
    for at in range(len(whole)):
        other = await house.cut(at)
        run = await other.segment()
        result = fold(await other.records.entries(RUN))
        assert (run.state, run.outcome, result.review.decision) == ("ended", "answered", "approve")
        assert kinds(await other.events()) == kinds(whole)
        assert other.suite.runs == 0


async def test_a_waiting_run_holds_nothing_and_goes_on_with_the_answer():
    """Each question is asked once; the call is made once it is allowed, as it was asked about."""
    house = House(AgentConfig(approvals=("write_file",)))
    await house.order()
    for n in range(3):
        run = await house.segment()
        assert (run.state, run.waits_for.call.name) == ("waiting", "write_file")
        assert f"n{n}.txt" in run.waits_for.call.arguments
        assert all(sandbox.closed for sandbox in house.driver.sandboxes)
        await house.orders.answer("red", RUN, Answer(True, "me"), house.clock.now())
    run = await house.segment()
    events = await house.events()
    assert (run.state, run.outcome) == ("ended", "answered")
    assert sum(isinstance(event, ApprovalAsked) for event in events) == 3
    assert {each.path for each in patch_of(events).files} == {"n0.txt", "n1.txt", "n2.txt"}


def patch_of(events):
    """Return the one patch of a record."""
    (patch,) = (event.patch for event in events if isinstance(event, PatchMade))
    return patch


async def test_a_refused_call_is_not_made():
    """The model is told, and goes on."""
    house = House(AgentConfig(approvals=("write_file",)), model=Remembering(1))
    await house.order()
    await house.segment()
    await house.orders.answer("red", RUN, Answer(False, "me", "not this"), house.clock.now())
    assert (await house.segment()).outcome == "answered"
    results = [e.result for e in await house.events() if isinstance(e, ToolCallDone)]
    assert "not this" in results[0].content
    assert patch_of(await house.events()).files == ()


async def test_a_segment_that_is_to_be_left_ends_after_the_call_under_way():
    """The call's result is committed, the run is queued, and nothing is done again."""
    stop = Stop()
    house = House()
    house.on_entry = lambda entry: stop.park() if entry.event.type == "tool_call_intended" else None
    await house.order()
    run = await house.segment(stop)
    left = await house.events()
    assert run.state == "queued"
    assert isinstance(left[-3], ToolCallDone)
    house.on_entry = lambda _: None
    run = await house.segment()
    events = await house.events()
    assert (run.state, run.outcome) == ("ended", "answered")
    assert [type(left[-1]), type(events[-2])] == [ResourcesUsed, ResourcesUsed]
    assert isinstance(events[len(left)], RunResumed)
    steps = [event.step for event in events if isinstance(event, StepStarted)]
    assert steps == sorted(set(steps))


async def test_a_segment_that_was_replaced_writes_nothing_more():
    """Whatever it still does: the record is the new worker's."""
    house = House()
    await house.order()

    def replaced(entry):
        if entry.event.type == "tool_call_intended":
            house.records.set_line(RUN, epoch=99)

    house.on_entry = replaced
    await house.segment()
    events = await house.events()
    assert events[-1].type == "tool_call_intended"
    assert (await house.run()).state == "running"


async def test_a_run_that_is_given_up_goes_on_later():
    """Cancellation of the segment is not the end of the run."""
    house = House()
    await house.order()
    run = await house.orders.claim("w", lambda s: s.queued[0].run_id, house.clock.now())
    began = asyncio.Event()
    house.on_entry = lambda entry: began.set() if entry.event.type == "step_started" else None
    work = asyncio.create_task(house.segments().work(run, Stop()))
    await began.wait()
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    assert not any(isinstance(event, RunEnded) for event in await house.events())
    await house.orders.release(RUN, run.epoch)
    assert (await house.segment()).outcome == "answered"


async def test_a_run_is_stopped_where_that_was_asked_for_before():
    """It ends as cancelled, without a step."""
    house = House()
    await house.order()
    await house.orders.claim("w", lambda s: s.queued[0].run_id, house.clock.now())
    run = await house.orders.cancel("red", RUN, house.clock.now(), "ann")
    await house.segments().work(run, Stop())
    ended = await house.run()
    assert (ended.state, ended.outcome) == ("ended", "cancelled")
    assert (await house.events())[-1].reason == "Cancelled by ann."
    assert house.model.asked == []


async def test_what_cannot_be_worked_on_ends_with_the_reason():
    """On record, so that whoever ordered it learns why."""
    house = House()
    await house.order(replace(ORDER, task=Task("x", "gone")))

    async def resolve(_repository, _base):
        raise RepositoryError("There is no such repository.")

    run = await house.orders.claim("w", lambda s: s.queued[0].run_id, house.clock.now())
    await replace(house.segments(), resolve=resolve).work(run, Stop())
    started, ended = await house.events()
    assert (started.base_commit, ended.outcome) == ("", "failed")
    assert "no such repository" in ended.reason


async def test_what_goes_wrong_names_no_path_of_this_machine():
    """Whoever ordered named the repository by its name, and reads that."""
    house = House()
    await house.order(replace(ORDER, task=Task("x", "gone")))

    async def resolve(repository, _base):
        raise RepositoryError(f"{repository}/.git cannot be read.")

    run = await house.orders.claim("w", lambda s: s.queued[0].run_id, house.clock.now())
    await replace(house.segments(), resolve=resolve).work(run, Stop())
    assert (await house.events())[-1].reason == "gone/.git cannot be read."


async def test_a_run_that_kills_its_workers_is_given_up():
    """After a handful that came to nothing."""
    house = House()
    await house.order()
    run = await house.orders.claim("w", lambda s: s.queued[0].run_id, house.clock.now())
    vain = [RunResumed(n, "w") for n in range(2, 7)]
    started = RunStarted(ORDER.task, "a" * 40, "loop")
    await house.records.append_all(RUN, run.epoch, [started, *vain], house.clock.now())
    await house.orders.release(RUN, run.epoch)
    ended = await house.segment()
    assert ended.outcome == "failed"
    assert "in a row" in (await house.events())[-1].reason


@pytest.mark.parametrize("lost", ["not taken", "on another machine"])
async def test_work_whose_checkpoint_is_missing_begins_anew(lost):
    """Under new steps, in a fresh workspace, and a person is told."""
    house = House()
    await house.order()
    await house.segment()
    events = await house.events()
    if lost == "not taken":
        events = [event for event in events if not isinstance(event, CheckpointMade)]
    at = next(n for n, event in enumerate(events) if event.type == "loop_ended")
    other = await house.with_record(events[:at])
    if lost == "on another machine":
        other.driver = ScriptedDriver({"a.py": "a = 1\n"})
    ended = await other.segment()
    result = fold(await other.records.entries(RUN))
    assert ended.outcome == "answered"
    assert {each.path for each in result.patch.files} == {"n0.txt", "n1.txt", "n2.txt"}
    assert any("begins anew" in warning for warning in result.warnings)


class Broken(MemoryRecordStore):
    """A record that fails for a while."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.left = after

    async def append_all(self, run_id, epoch, together, at):
        """Fail once so many appends were made."""
        self.left -= 1
        if self.left == 0:
            raise StoreError("The database is away.")
        return await super().append_all(run_id, epoch, together, at)


@pytest.mark.parametrize("after", [2, 6, 12])
async def test_a_store_that_fails_ends_the_segment_and_not_the_run(after):
    """What was committed stands; the next segment goes on from it."""
    house = House(records=Broken(after))
    await house.order()
    with pytest.raises(StoreError) as raised:
        await house.segment()
    assert not isinstance(raised.value, StaleEpochError)
    assert not any(isinstance(event, RunEnded) for event in await house.events())
    run = await house.run()
    await house.orders.release(RUN, run.epoch)
    assert (await house.segment()).outcome == "answered"
