"""A record folded into a result."""

import tracemalloc
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.runs.parts import COMMIT, FAILING, NO_PATCH, PASSING, PATCH, TASK

from turnout.core.events import (
    ApprovalAsked,
    ApprovalGiven,
    AttemptChosen,
    AttemptStarted,
    ConnectionsAsked,
    Entry,
    Event,
    Explained,
    LoopEnded,
    ModelCallDone,
    ModelCallFailed,
    Notice,
    PatchMade,
    PlanMade,
    PlanUpdated,
    ResourcesUsed,
    Reviewed,
    ReviewNote,
    RunEnded,
    RunStarted,
    StepStarted,
    TestsRan,
    ToolCallDone,
    ToolCallIntended,
    VerdictGiven,
    WorkspaceReady,
)
from turnout.core.ids import DeploymentId, ModelId, ProviderName, RequestId, RunId, ToolCallId
from turnout.core.inference import RoutingReport
from turnout.core.messages import AssistantMessage
from turnout.core.money import Micros
from turnout.core.runs import Connection, Verdict
from turnout.core.tools import ToolCall, ToolResult
from turnout.core.usage import Usage
from turnout.runs.export import result_object
from turnout.runs.summary import Summary, fold

START = datetime(2026, 1, 1, tzinfo=UTC)
STARTED = RunStarted(TASK, COMMIT, "loop")


def record(*events: Event) -> list[Entry]:
    """Entries one second apart."""
    return [
        Entry(RunId("run-1"), n, START + timedelta(seconds=n - 1), event)
        for n, event in enumerate(events, 1)
    ]


def call(cost: int | None) -> ModelCallDone:
    """Return a model call that cost so much."""
    routing = RoutingReport(
        model=ModelId("m"),
        provider=ProviderName("p"),
        deployment=DeploymentId("p/m"),
        objective="latency",
        task="coding",
        task_source="request",
        session=None,
        sticky=False,
        fallback=False,
        policy_revision=0,
        reason="the only one",
        cost_micros=None if cost is None else Micros(cost),
    )
    message = AssistantMessage("hello")
    return ModelCallDone(
        1, "act", "main", "k", RequestId("req-1"), message, "stop", Usage(10, 2), routing, 12
    )


def test_a_whole_record_becomes_a_result() -> None:
    """Every fact that a person asks for is there."""
    verdict = Verdict("resolved", True, True, True)
    result = fold(
        record(
            STARTED,
            Notice("The tree is dirty.", "warning"),
            WorkspaceReady("namespaces", "pytest -q", (), 0.5),
            TestsRan("before", FAILING),
            StepStarted(1, "plan", "quality"),
            PlanMade("Look at pages.py."),
            StepStarted(2, "act", "latency"),
            call(5),
            call(7),
            LoopEnded("answered", "done", "It was an off-by-one."),
            PatchMade(PATCH),
            TestsRan("after", PASSING),
            VerdictGiven(verdict),
            Explained("Counted from 1."),
            RunEnded("answered", "done"),
        )
    )
    assert (result.outcome, result.verdict, result.patch) == ("answered", verdict, PATCH)
    assert (result.tests_before, result.tests_after) == (FAILING, PASSING)
    assert (result.cost, result.priced, result.usage) == (12, True, Usage(20, 4))
    assert (result.steps, result.seconds, result.plan) == (2, 14.0, "Look at pages.py.")
    assert (result.explanation, result.warnings) == ("Counted from 1.", ("The tree is dirty.",))


def test_an_unknown_price_is_not_nothing() -> None:
    """The sum is of what is known, and says that it is not all."""
    result = fold(record(STARTED, call(5), call(None)))
    assert (result.cost, result.priced) == (5, False)


def test_a_run_that_goes_on_has_no_outcome() -> None:
    """A record can be folded at any moment."""
    assert fold(record(STARTED)).outcome is None


def test_the_last_word_stands_where_nothing_explains() -> None:
    """A run without a diff still has an answer."""
    ended = LoopEnded("answered", "done", "There is no bug.")
    assert fold(record(STARTED, ended)).explanation == "There is no bug."


def test_a_record_without_its_start_is_refused() -> None:
    """Nothing is made up for it."""
    with pytest.raises(ValueError, match="opens with notice"):
        fold(record(Notice("hello")))
    with pytest.raises(ValueError, match="without entries"):
        fold([])


def test_the_object_for_scripts_names_every_call_and_failure() -> None:
    """Cost, tokens and the reason of each call are there, as are calls that failed."""
    failed = ModelCallFailed(2, "act", "main", "k", 429, "session_request_cap", "No more.")
    result = result_object(fold(record(STARTED, call(None), failed)))
    (made,) = result["model_calls"]
    assert made["request_id"] == "req-1"
    assert made["cost_micros"] is None
    assert made["tokens"]["input_tokens"] == 10
    assert made["reason"] == "the only one"
    assert result["failed_calls"][0]["status"] == 429
    assert result["priced"] is False


def test_the_object_for_scripts_holds_each_tool_call_with_its_result() -> None:
    """An id that comes again belongs to another call; one without a result is still open."""
    same = ToolCallId("call_0")
    first = ToolCallIntended(1, ToolCall(same, "run", '{"command": "make"}'))
    second = ToolCallIntended(2, ToolCall(same, "read_file", '{"path": "a"}'))
    failed = ToolCallDone(1, ToolResult(same, "no make", is_error=True), 0.25)
    made = result_object(fold(record(STARTED, first, failed, second)))["tool_calls"]
    assert made == [
        {
            "step": 1,
            "name": "run",
            "arguments": '{"command": "make"}',
            "result": "no make",
            "is_error": True,
            "seconds": 0.25,
        },
        {
            "step": 2,
            "name": "read_file",
            "arguments": '{"path": "a"}',
            "result": None,
            "is_error": None,
            "seconds": None,
        },
    ]


EVENTS = st.sampled_from(
    [
        ToolCallIntended(1, ToolCall(ToolCallId("c"), "run", "{}")),
        ToolCallDone(1, ToolResult(ToolCallId("c"), "exit 0"), 0.1),
        call(3),
        call(None),
        Notice("careful", "warning"),
        Notice("hello"),
        StepStarted(4, "act", "latency"),
        PatchMade(PATCH),
        Explained("words"),
        LoopEnded("capped", "cap"),
        ToolCallIntended(1, ToolCall(ToolCallId("c"), "run", "{}")),
        ToolCallDone(1, ToolResult(ToolCallId("c"), "exit 0"), 0.5),
        ApprovalAsked(1, ToolCall(ToolCallId("c"), "run", "{}"), "run"),
        ApprovalGiven(1, ToolCallId("c"), True, "ann"),
        ConnectionsAsked((Connection("example.org", 443, False, "no"),)),
    ]
)


@given(st.lists(EVENTS, max_size=12))
def test_a_run_that_is_followed_looks_as_its_record_will(events: list[Event]) -> None:
    """A view that follows a run sees at each event what a later reader of its record sees."""
    entries = record(STARTED, *events)
    summary = Summary()
    assert summary.result is None
    for number, entry in enumerate(entries, 1):
        summary.add(entry)
        assert summary.result == fold(entries[:number])


def test_an_event_costs_the_same_however_many_came_before() -> None:
    """Nothing that a long run has gathered is copied for it."""
    summary = Summary()
    summary.add(record(STARTED)[0])
    ids = [ToolCallId(f"c{n}") for n in range(3_000)]
    many = [ToolCallIntended(1, ToolCall(one, "run", "{}")) for one in ids]
    for entry in record(*many, *[call(1)] * 3_000):
        summary.add(entry)
    newest = record(ToolCallDone(1, ToolResult(ids[-1], "exit 0"), 0.5))[0]
    tracemalloc.start()
    summary.add(newest)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16_000
    assert summary.result is not None
    assert summary.result.tool_calls[-1].result == ToolResult(ids[-1], "exit 0")


def test_the_json_of_a_run_tells_of_plan_attempts_review_and_approvals() -> None:
    """Everything that a script would otherwise have to read from the record."""
    asked = ApprovalAsked(2, ToolCall(ToolCallId("c"), "run", "{}"), "run")
    review = Reviewed(True, "Bad.", (ReviewNote("a.py", 3, "Wrong.", True),))
    first, second = ResourcesUsed(1.0, 5, 10, 2.0, 0.0), ResourcesUsed(2.0, 3, None, 3.0, 1.0)
    result = fold(
        record(
            STARTED,
            AttemptStarted(1, 2, "latency"),
            PlanMade("1. a\n2. b", ("a", "b"), "tests pass"),
            PlanUpdated(("done", "under_way")),
            asked,
            ApprovalGiven(2, ToolCallId("c"), False, "ann", "no"),
            LoopEnded("answered", "Done.", "First."),
            PatchMade(PATCH),
            first,
            TestsRan("after", FAILING),
            AttemptStarted(2, 2, "quality", "told"),
            LoopEnded("stuck", "Circles.", "Second."),
            PatchMade(NO_PATCH),
            second,
            review,
            AttemptChosen(1, "Fewest fail."),
        )
    )
    told = result_object(result)
    assert [use["outcome"] for use in told["attempts"]] == ["answered", "stuck"]
    assert [use["review"] is None for use in told["attempts"]] == [True, False]
    assert (told["chosen_attempt"], result.patch, result.tests_after) == (1, PATCH, FAILING)
    assert (told["review"], told["explanation"]) == (None, "First.")
    assert told["approvals"] == [
        {
            "step": 2,
            "name": "run",
            "arguments": "{}",
            "rule": "run",
            "allowed": False,
            "by": "ann",
            "note": "no",
        }
    ]
    assert result.resources == ResourcesUsed(3.0, 5, None, 5.0, 1.0)
    assert (told["plan_steps"], told["plan"]) == ([], "")


def test_the_json_tells_how_far_the_plan_is() -> None:
    """Item by item, with the condition of success."""
    plan = PlanMade("1. a\n2. b", ("a", "b"), "tests pass")
    told = result_object(fold(record(STARTED, plan, PlanUpdated(("done", "under_way")))))
    assert told["plan_steps"] == [
        {"text": "a", "state": "done"},
        {"text": "b", "state": "under_way"},
    ]
    assert told["success_condition"] == "tests pass"
