"""What follows from a record."""

import json

import pytest

from turnout.agent.loop.calls import finish_reason, with_unique_ids
from turnout.agent.loop.state import MAIN, LoopState, Role
from turnout.agent.tools.surfaces import SURFACES
from turnout.core.events import (
    Event,
    HistoryCondensed,
    ModelCallDone,
    ModelCallIntended,
    PlanMade,
    StepStarted,
    ToolCallDone,
    ToolCallIntended,
)
from turnout.core.ids import DeploymentId, ModelId, ProviderName, RequestId, ToolCallId
from turnout.core.inference import ModelReply, RoutingReport
from turnout.core.messages import AssistantMessage, SystemMessage, ToolMessage, UserMessage
from turnout.core.tools import ToolCall, ToolResult
from turnout.core.usage import Usage

ROUTING = RoutingReport(
    ModelId("m"),
    ProviderName("p"),
    DeploymentId("p/m"),
    "latency",
    "coding",
    "request",
    None,
    sticky=False,
    fallback=False,
    policy_revision=1,
    reason="",
    cost_micros=None,
)
CALL = ToolCall(ToolCallId("c1"), "run", "{}")
CALLING = AssistantMessage("", (CALL,))
SUMMARY = AssistantMessage("short")


def intended(step: int, of: str, *messages: SystemMessage | UserMessage) -> ModelCallIntended:
    """Return a call's intent."""
    return ModelCallIntended(step, "act", of, f"k{step}", "auto", messages)


def done(step: int, of: str, message: AssistantMessage) -> ModelCallDone:
    """Return a call's reply."""
    return ModelCallDone(
        step, "act", of, f"k{step}", RequestId("r"), message, "stop", Usage(), ROUTING, 1
    )


RECORD: list[Event] = [
    StepStarted(1, "plan", "quality"),
    PlanMade("Look."),
    StepStarted(2, "act", "latency"),
    intended(2, MAIN, SystemMessage("s"), UserMessage("u")),
    done(2, MAIN, CALLING),
    ToolCallIntended(2, CALL),
    StepStarted(3, "summary", "cost"),
    intended(3, "summary-3", UserMessage("long")),
    done(3, "summary-3", SUMMARY),
    ToolCallDone(2, ToolResult(CALL.id, "short"), 0.1),
]


SHELL = SURFACES["shell"]


def test_a_conversation_is_what_was_said_in_it() -> None:
    """Calls of other conversations between its events do not belong to it."""
    assert LoopState.of(RECORD, SHELL).messages == (
        SystemMessage("s"),
        UserMessage("u"),
        CALLING,
        ToolMessage(CALL.id, "short"),
    )


def test_counts_follow_from_the_record() -> None:
    """Steps share one count, act steps have their own; a turn has its results."""
    state = LoopState.of(RECORD, SHELL)
    assert (state.next_step, state.act_steps, state.tool_calls) == (4, 1, 1)
    assert state.plan == PlanMade("Look.")
    assert state.turn is not None
    assert [result.content for result in state.turn.results] == ["short"]
    assert LoopState(SHELL).next_step == 1


def test_a_crash_leaves_open_calls() -> None:
    """An intent without a result is open; calls that were not begun are unanswered as well."""
    state = LoopState.of(RECORD[:-1], SHELL)
    assert state.open_calls == (CALL,)
    assert state.unanswered() == (CALL,)
    assert LoopState.of(RECORD, SHELL).unanswered() == ()


def test_a_review_has_its_own_conversation() -> None:
    """What the act steps said is not in it, and they are not its steps."""
    state = LoopState.of(RECORD, SHELL, Role("review", "review-1"))
    assert (state.messages, state.act_steps) == ((), 0)


def long_record(turns: int) -> list[Event]:
    """Return a record of so many turns, each with a nudge, a call and its result."""
    events: list[Event] = [intended(1, MAIN, SystemMessage("s"), UserMessage("task"))]
    for step in range(1, turns + 1):
        call = ToolCall(ToolCallId(f"c{step}"), "run", f'{{"command": "echo {step} >> log"}}')
        if step > 1:
            events.append(intended(step, MAIN, UserMessage(f"nudge {step}")))
        events += [
            StepStarted(step, "act", "latency"),
            done(step, MAIN, AssistantMessage("", (call,))),
            ToolCallIntended(step, call),
            ToolCallDone(step, ToolResult(call.id, f"exit 0\n{step}", full="w" * step), 0.1),
        ]
    return events


@pytest.mark.parametrize("keep", [0, 1, 2, 5])
def test_a_summary_takes_the_place_of_whole_turns(keep: int) -> None:
    """Instructions and task stay, no result loses its call, and what was changed is kept."""
    state = LoopState.of(long_record(6), SHELL)
    part = state.history.condensable(keep)
    assert part is not None
    state.apply(HistoryCondensed(MAIN, part[1], "summary"))
    said = state.messages
    assert said[:3] == (SystemMessage("s"), UserMessage("task"), UserMessage("summary"))
    assert sum(isinstance(message, AssistantMessage) for message in said) == keep
    assert len(said) == 3 + 3 * keep
    told = {message.tool_call_id for message in said if isinstance(message, ToolMessage)}
    assert told == {f"c{step}" for step in range(7 - keep, 7)}
    assert state.effects.text().count("\n") == 5


def test_there_may_be_nothing_to_condense() -> None:
    """Before the first turn, and where fewer turns were made than are kept."""
    assert LoopState(SHELL).history.condensable(0) is None
    assert LoopState.of(long_record(2), SHELL).history.condensable(2) is None
    assert LoopState.of(long_record(2), SHELL).history.condensable(3) is None


def test_whole_outputs_are_kept_by_number() -> None:
    """A result that was cut can be read on in; one that was not has no more to show."""
    state = LoopState.of(long_record(3), SHELL)
    assert (state.outputs.find("output:2"), state.outputs.find("output:9")) == ("ww", None)


def test_what_is_kept_of_outputs_is_bounded() -> None:
    """The oldest go first."""
    state = LoopState(SHELL)
    state.apply(done(1, MAIN, CALLING))
    for number in range(1, 8):
        call = ToolCall(ToolCallId(f"c{number}"), "run", "{}")
        state.apply(ToolCallIntended(1, call))
        state.apply(ToolCallDone(1, ToolResult(call.id, "x", full="y" * (1 << 20)), 0.1))
    kept = [number for number in range(1, 8) if state.outputs.find(f"output:{number}")]
    assert kept == [4, 5, 6, 7]


@pytest.mark.cases
@pytest.mark.parametrize(
    ("arguments", "tokens", "expected"),
    [
        ('{"path": "a.py", "content": "half', 5, "length"),
        ('{"path": "a.py"', 5, "length"),
        ('{"path":', 5, "length"),
        ('{"path": "a.py", "content": "half"}', 100, "length"),
        ('{"path": "a.py"}', 99, "tool_calls"),
        ('{"path": bad}', 5, "tool_calls"),
        ("", 5, "tool_calls"),
    ],
)
def test_a_cut_that_the_server_hides_is_seen(arguments: str, tokens: int, expected: str) -> None:
    """All tokens used, or arguments that end in the middle: nothing of the reply is run."""
    call = ToolCall(ToolCallId("c"), "write_file", arguments)
    reply = ModelReply(
        RequestId("r"),
        AssistantMessage("", (call,)),
        "tool_calls",
        Usage(output_tokens=tokens),
        ROUTING,
    )
    assert finish_reason(reply, 100) == expected


def test_ids_that_cannot_be_used_are_replaced_in_the_wire_form_too() -> None:
    """Empty, odd, repeated and earlier ids get new ones; fields we do not know stay."""
    ids = ["c1", "", "x\ud800", "c2", "c2"]
    wire = {
        "role": "assistant",
        "signature": "s",
        "tool_calls": [{"id": one, "function": {"name": "run", "arguments": "{}"}} for one in ids],
    }
    calls = tuple(ToolCall(ToolCallId(one), "run", "{}") for one in ids)
    message = with_unique_ids(AssistantMessage("", calls, wire=json.dumps(wire)), {CALL.id})
    named = [call.id for call in message.tool_calls]
    assert named[3] == "c2"
    assert len({"c1", "", "x\ud800", *named}) == 8
    sent = json.loads(message.wire)
    assert [call["id"] for call in sent["tool_calls"]] == named
    assert sent["signature"] == "s"


def test_a_message_with_good_ids_is_left_alone() -> None:
    """Its wire form is what came, byte for byte."""
    message = AssistantMessage("", (CALL,), wire='{"tool_calls":  [{"id":"c1"}]}')
    assert with_unique_ids(message, set()) is message
