"""Spans are told beside the work, once, by whoever did it."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest
from tests.unit.runs.observe.records import RUN, answered, intended, timed, whole
from tests.unit.runs.parts import COMMIT, TASK

from turnout.core.events import Entry, RunEnded, RunStarted, StepStarted
from turnout.core.ids import RunId
from turnout.core.observe.metrics import Metrics
from turnout.core.observe.spans import Span
from turnout.errors import NotFoundError, StoreError
from turnout.runs.observe.counting import RunMetrics
from turnout.runs.observe.watching import RunWatch
from turnout.testing.clock import FrozenClock
from turnout.testing.stores import MemoryRecordStore


class Sink:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.spans: list[Span] = []

    def take(self, spans: Sequence[Span]) -> None:
        """Keep spans."""
        self.spans += spans

    @property
    def names(self) -> list[str]:
        """Of the spans, in the order in which they were told."""
        return [span.name for span in self.spans]


class Records(MemoryRecordStore):
    """Holds one record, which can be away."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        super().__init__()
        self.held = entries
        self.away = False
        self.reads = 0

    async def entries(
        self, run_id: RunId, *, after: int = 0, limit: int | None = None
    ) -> Sequence[Entry]:
        """Return the record from after an entry."""
        self.reads += 1
        if self.away:
            raise StoreError("The database is away.")
        if run_id != RUN:
            raise NotFoundError("There is no such run.")
        return [entry for entry in self.held if entry.seq > after]


ALL = [
    "workspace",
    "tests before",
    "chat auto",
    "execute_tool run",
    "checkpoint",
    "step act",
    "chat auto",
    "approval",
    "execute_tool run",
    "step act",
    "invoke_agent turnout",
]


async def test_a_run_of_one_worker_is_told_as_it_goes_without_being_read() -> None:
    """Nothing is asked of the store."""
    sink, records = Sink(), Records(whole())
    async with RunWatch(records, [sink]) as watch:
        for entry in whole():
            watch.entry(entry)
        watch.look(RUN)
    assert sink.names == ALL
    assert records.reads == 0


async def test_two_workers_tell_of_a_run_once_between_them() -> None:
    """The second reads what the first did, and tells of what came since, the decision too."""
    record, one, other = whole(), Sink(), Sink()
    taken_up = next(at for at, entry in enumerate(record) if entry.event.type == "run_resumed")
    decided = next(at for at, entry in enumerate(record) if entry.event.type == "approval_given")
    async with RunWatch(Records(record[:taken_up]), [one]) as watch:
        for entry in record[:taken_up]:
            watch.entry(entry)
    async with RunWatch(Records(record), [other]) as watch:
        for at, entry in enumerate(record[taken_up:], taken_up):
            if at != decided:
                watch.entry(entry)
    assert sorted(one.names + other.names) == sorted(ALL)
    assert {s.span_id for s in one.spans}.isdisjoint(s.span_id for s in other.spans)
    assert {s.trace_id for s in one.spans} == {s.trace_id for s in other.spans}


async def test_an_end_that_nobody_worked_for_is_told_when_it_is_heard_of() -> None:
    """A run that waits is cancelled by whoever is asked to."""
    sink = Sink()
    record = whole()[:14]
    end = Entry(RUN, 15, record[-1].at + timedelta(hours=1), RunEnded("cancelled", "asked to"))
    async with RunWatch(Records([*record, end]), [sink]) as watch:
        watch.look(RUN)
        watch.look(RUN)
    assert sink.names == ["step act", "invoke_agent turnout"]
    assert sink.spans[-1].attributes["turnout.outcome"] == "cancelled"


async def test_what_could_not_be_read_is_told_with_the_next_entry() -> None:
    """An outage of the database loses nothing that is still followed."""
    sink = Sink()
    record = timed(
        (0, RunStarted(TASK, COMMIT, "loop")),
        (1, StepStarted(1, "act", "latency")),
        (2, intended(1)),
        (3, answered(1)),
        (4, RunEnded("answered", "done")),
    )
    records = Records(record)
    records.away = True
    async with RunWatch(records, [sink]) as watch:
        watch.entry(record[0])
        watch.entry(record[2])
        await settled(lambda: records.reads == 1)
        records.away = False
        watch.entry(record[4])
    assert sink.names == ["chat auto", "step act", "invoke_agent turnout"]


async def settled(done: object) -> None:
    """Let the watch run until something holds, a bounded number of turns."""
    assert callable(done)
    for _ in range(1_000):
        if done():
            return
        await asyncio.sleep(0)
    pytest.fail("The watch did not get there.")


async def test_a_run_that_is_gone_is_passed_over() -> None:
    """Retention may have deleted it."""
    sink = Sink()
    async with RunWatch(Records(whole()), [sink]) as watch:
        watch.look(RunId("run-gone"))
        for entry in whole()[:5]:
            watch.entry(entry)
    assert sink.names == ["workspace", "tests before"]


async def test_spans_and_entries_are_counted() -> None:
    """By the names of the GenAI conventions, as Prometheus writes them."""
    metrics = Metrics()
    clock = FrozenClock(whole()[-1].at)
    counts = RunMetrics(metrics, clock)
    async with RunWatch(Records(whole()), [counts]) as watch:
        for entry in whole():
            counts.entry(entry)
            watch.entry(entry)
    text, tools = metrics.text(), "gen_ai_execute_tool_duration_seconds"
    model = 'gen_ai_request_model="auto",gen_ai_provider_name="p",gen_ai_response_model="m"'
    chat = f'gen_ai_operation_name="chat",{model},error_type=""'
    for line in (
        'turnout_record_entries_total{type="step_started"} 2',
        'turnout_record_commit_seconds_bucket{le="0.0005"} 2',
        "turnout_record_commit_seconds_count 21",
        "turnout_sandbox_cpu_seconds_total 2.5",
        "turnout_sandbox_memory_mib_seconds_total 80",
        "turnout_sandbox_cost_usd_total 3e-05",
        'turnout_segments_started_total{begun="new"} 1',
        'turnout_segments_started_total{begun="resumed"} 1',
        'turnout_runs_ended_total{outcome="answered"} 1',
        'gen_ai_invoke_agent_duration_seconds_sum{gen_ai_agent_name="turnout",error_type=""} 50',
        'turnout_step_duration_seconds_sum{kind="act"} 26',
        f'{tools}_sum{{gen_ai_tool_name="run",error_type=""}} 3',
        f'{tools}_count{{gen_ai_tool_name="run",error_type="tool_error"}} 1',
        "turnout_checkpoint_duration_seconds_sum 1",
        "turnout_workspace_duration_seconds_sum 3",
        "turnout_tests_duration_seconds_count 1",
        "turnout_approval_duration_seconds_sum 7",
        f"gen_ai_client_operation_duration_seconds_sum{{{chat}}} 12",
    ):
        assert f"{line}\n" in text
