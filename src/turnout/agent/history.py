"""What follows from the events of a run: its conversations, turns and counts.

All of it is a pure fold, so that a run whose events are on record is known whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from turnout.core.events import (
    Event,
    ModelCallDone,
    ModelCallIntended,
    PlanMade,
    StepStarted,
    ToolCallDone,
)
from turnout.core.ids import RunId
from turnout.core.messages import Message, ToolMessage
from turnout.core.tools import ToolResult

__all__ = [
    "MAIN",
    "Turn",
    "act_steps",
    "conversation",
    "cut",
    "idempotency_key",
    "next_step",
    "plan",
    "turns",
]

MAIN = "main"
"""The conversation of the act steps, the only one in which tools are called."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One reply of the main conversation and the results of its calls so far."""

    reply: ModelCallDone
    results: tuple[ToolResult, ...]


def conversation(events: Sequence[Event], name: str) -> tuple[Message, ...]:
    """Return what a call of conversation `name` would send if it were made now."""
    messages: list[Message] = []
    for event in events:
        match event:
            case ModelCallIntended(conversation=of) if of == name:
                messages += event.messages
            case ModelCallDone(conversation=of) if of == name:
                messages.append(event.message)
            case ToolCallDone(result=result) if name == MAIN:
                messages.append(ToolMessage(result.call_id, result.content))
            case _:
                pass
    return tuple(messages)


def turns(events: Sequence[Event]) -> tuple[Turn, ...]:
    """Return the turns of the main conversation, oldest first."""
    replies: list[tuple[ModelCallDone, list[ToolResult]]] = []
    for event in events:
        match event:
            case ModelCallDone(conversation=of) if of == MAIN:
                replies.append((event, []))
            case ToolCallDone(result=result) if replies:
                replies[-1][1].append(result)
            case _:
                pass
    return tuple(Turn(reply, tuple(results)) for reply, results in replies)


def cut(reply: ModelCallDone) -> str:
    """Return how a reply was stopped in the middle, so that its calls are not whole, or nothing."""
    match reply.finish_reason:
        case "length":
            return "because it was too long"
        case "content_filter":
            return "by the provider's content filter"
        case "stop" | "tool_calls":
            return ""


def plan(events: Sequence[Event]) -> str:
    """Return the plan; empty where none was made."""
    return next((event.text for event in events if isinstance(event, PlanMade)), "")


def next_step(events: Sequence[Event]) -> int:
    """Return the number of the step that would start now."""
    return 1 + max((event.step for event in events if isinstance(event, StepStarted)), default=0)


def act_steps(events: Sequence[Event]) -> int:
    """Return how many act steps have started."""
    return sum(isinstance(event, StepStarted) and event.kind == "act" for event in events)


def idempotency_key(run_id: RunId, step: int) -> str:
    """Return the key of a step's model call: the same however often it is sent."""
    return f"{run_id}-step-{step}"
