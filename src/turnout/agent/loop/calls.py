"""A model call on record: its intent before, its reply or failure after."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, replace

from turnout.agent.base import AgentConfig, ModelClient, StepConfig
from turnout.agent.loop.state import idempotency_key
from turnout.agent.wire import UNREACHABLE
from turnout.core.events import (
    Event,
    ModelCallDone,
    ModelCallFailed,
    ModelCallIntended,
    StepStarted,
)
from turnout.core.ids import RunId, SessionId, ToolCallId, new_tool_call_id
from turnout.core.inference import FinishReason, ModelReply, ModelRequest, RoutingAsk, StepKind
from turnout.core.json import as_object, as_objects
from turnout.core.messages import AssistantMessage, Message
from turnout.core.tools import Tool
from turnout.errors import GatewayError

__all__ = [
    "OUT_OF_TIME",
    "Ask",
    "finish_reason",
    "given_up",
    "step_with_call",
    "time_is_over",
    "with_unique_ids",
]

OUT_OF_TIME = "out_of_time"
"""Code of a call that was given up because the time of its run was over."""

_ID = re.compile("[!-~]{1,256}")
_MOST_CALLS = 128


@dataclass(frozen=True, slots=True)
class Ask:
    """One step's model call."""

    run_id: RunId
    step: int
    kind: StepKind
    conversation: str
    messages: tuple[Message, ...]
    """What the call adds to its conversation."""
    tools: tuple[Tool, ...] = ()
    history: tuple[Message, ...] = ()
    """What its conversation has said already."""
    settings: StepConfig | None = None
    """How the call is made; None: as steps of its kind are."""
    connections: tuple[str, ...] = ()
    tool: str = ""
    """The one tool that it carries; empty: those that steps of its kind do."""
    begun: StepStarted | ModelCallIntended | None = None
    """What of it is on record already, since a crash: only the rest is done."""
    seconds: float | None = None
    """How long it may take before the run's time is over; None: no limit of the run's."""


async def step_with_call(
    client: ModelClient, config: AgentConfig, ask: Ask
) -> AsyncIterator[Event]:
    """Start a step and make its model call; the last event is the reply or the failure.

    One whose intent is on record is sent again under the same key: the gateway gives the answer
    that it gave before, if it did.
    """
    settings = ask.settings or config.steps[ask.kind]
    key = idempotency_key(ask.run_id, ask.step)
    messages = ask.begun.messages if isinstance(ask.begun, ModelCallIntended) else ask.messages
    if ask.begun is None:
        yield StepStarted(ask.step, ask.kind, settings.objective)
    if not isinstance(ask.begun, ModelCallIntended):
        yield ModelCallIntended(
            ask.step, ask.kind, ask.conversation, key, settings.model, messages, ask.tool
        )
    request = ModelRequest(
        messages=(*ask.history, *messages),
        call_kind=ask.kind,
        routing=RoutingAsk(settings.objective, settings.task, SessionId(ask.run_id)),
        idempotency_key=key,
        model=settings.model,
        tools=ask.tools,
        max_tokens=settings.max_tokens,
        thinking=settings.thinking,
        connections=ask.connections,
    )
    try:
        async with asyncio.timeout(ask.seconds):
            reply = await client.call(request)
    except (GatewayError, TimeoutError) as error:
        yield _failed(ask, config, key, error)
        return
    yield ModelCallDone(
        step=ask.step,
        kind=ask.kind,
        conversation=ask.conversation,
        idempotency_key=key,
        request_id=reply.request_id,
        message=with_unique_ids(_bounded(reply.message), _call_ids(ask.history)),
        finish_reason=finish_reason(reply, settings.max_tokens),
        usage=reply.usage,
        routing=reply.routing,
        latency_ms=reply.latency_ms,
    )


def time_is_over(config: AgentConfig) -> str:
    """Say that a run has taken the time that it may."""
    return f"The run's {config.max_seconds:g} seconds are over. Raise `max_seconds` for more."


def _failed(
    ask: Ask, config: AgentConfig, key: str, error: GatewayError | TimeoutError
) -> ModelCallFailed:
    status, code, text = None, OUT_OF_TIME, ""
    if isinstance(error, GatewayError):
        status = None if error.code == UNREACHABLE else error.status
        code, text = error.code, str(error)
    text = text or time_is_over(config)
    return ModelCallFailed(ask.step, ask.kind, ask.conversation, key, status, code, text)


def given_up(call: ModelCallIntended) -> ModelCallFailed:
    """Return the end of a call that a crash has left without one, and whose answer is of no use.

    A summary of what a command printed is one: the command itself was interrupted.
    """
    text = "The service stopped while it was under way, and nothing waits for its answer any more."
    key = call.idempotency_key
    return ModelCallFailed(call.step, call.kind, call.conversation, key, None, "interrupted", text)


def finish_reason(reply: ModelReply, max_tokens: int) -> FinishReason:
    """Return why a reply ended: `length` also where its server hides that it was cut.

    It was where it has used all the tokens that it might, or where the arguments of its last call
    end in the middle.
    """
    if reply.finish_reason not in {"stop", "tool_calls"}:
        return reply.finish_reason
    full = not reply.usage.estimated and reply.usage.output_tokens >= max_tokens
    calls = reply.message.tool_calls
    return "length" if full or (calls and _is_open(calls[-1].arguments)) else reply.finish_reason


def _is_open(arguments: str) -> bool:
    """Whether an object begins and does not end."""
    text = arguments.strip()
    if not text.startswith("{") or text.endswith("}"):
        return False
    try:
        json.JSONDecoder(strict=False).raw_decode(text)
    except json.JSONDecodeError as error:
        return error.pos >= len(text) or error.msg.startswith("Unterminated string")
    except RecursionError:
        return False
    return False


def _bounded(message: AssistantMessage) -> AssistantMessage:
    """Leave out the calls of a flood of them: each that stays costs a result."""
    if len(message.tool_calls) <= _MOST_CALLS:
        return message
    wire = as_object(json.loads(message.wire)) if message.wire else {}
    kept = as_objects(wire.get("tool_calls"))[:_MOST_CALLS]
    text = json.dumps({**wire, "tool_calls": kept}) if wire else ""
    return replace(message, tool_calls=message.tool_calls[:_MOST_CALLS], wire=text)


def with_unique_ids(message: AssistantMessage, taken: Collection[ToolCallId]) -> AssistantMessage:
    """Give calls whose id is empty, odd or in use a new one, in the wire form too.

    Servers refuse a conversation in which one id names two calls.
    """
    seen = set(taken)
    ids: list[ToolCallId] = []
    for call in message.tool_calls:
        usable = _ID.fullmatch(call.id) and call.id not in seen
        ids.append(call.id if usable else new_tool_call_id())
        seen.add(ids[-1])
    if ids == [call.id for call in message.tool_calls]:
        return message
    calls = tuple(
        replace(call, id=call_id) for call, call_id in zip(message.tool_calls, ids, strict=True)
    )
    if not message.wire:
        return replace(message, tool_calls=calls)
    wire = as_object(json.loads(message.wire))
    renamed = [
        {**call, "id": call_id}
        for call, call_id in zip(as_objects(wire.get("tool_calls")), ids, strict=True)
    ]
    return replace(message, tool_calls=calls, wire=json.dumps({**wire, "tool_calls": renamed}))


def _call_ids(history: Sequence[Message]) -> set[ToolCallId]:
    spoken = [message for message in history if isinstance(message, AssistantMessage)]
    return {call.id for message in spoken for call in message.tool_calls}
