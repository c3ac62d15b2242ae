"""What follows from a record."""

import json

from turnout.agent.calls import with_unique_ids
from turnout.agent.history import MAIN, act_steps, conversation, next_step, plan, turns
from turnout.core.events import (
    Event,
    ModelCallDone,
    ModelCallIntended,
    PlanMade,
    StepStarted,
    ToolCallDone,
    ToolCallIntended,
)
from turnout.core.ids import DeploymentId, ModelId, ProviderName, RequestId, ToolCallId
from turnout.core.inference import RoutingReport
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


def test_a_conversation_is_what_was_said_in_it() -> None:
    """Calls of other conversations between its events do not belong to it."""
    assert conversation(RECORD, MAIN) == (
        SystemMessage("s"),
        UserMessage("u"),
        CALLING,
        ToolMessage(CALL.id, "short"),
    )
    assert conversation(RECORD, "summary-3") == (UserMessage("long"), SUMMARY)


def test_counts_follow_from_the_record() -> None:
    """Steps share one count, act steps have their own; a turn has its results."""
    assert (next_step(RECORD), act_steps(RECORD), plan(RECORD)) == (4, 1, "Look.")
    assert (next_step([]), plan([])) == (1, "")
    (turn,) = turns(RECORD)
    assert [result.content for result in turn.results] == ["short"]


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
