"""A model call on record: its intent before, its reply or failure after."""

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

__all__ = ["Ask", "finish_reason", "step_with_call", "with_unique_ids"]

_ID = re.compile("[!-~]{1,256}")


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


async def step_with_call(
    client: ModelClient, config: AgentConfig, ask: Ask
) -> AsyncIterator[Event]:
    """Start a step and make its model call; the last event is the reply or the failure."""
    settings = ask.settings or config.steps[ask.kind]
    key = idempotency_key(ask.run_id, ask.step)
    yield StepStarted(ask.step, ask.kind, settings.objective)
    yield ModelCallIntended(ask.step, ask.kind, ask.conversation, key, settings.model, ask.messages)
    request = ModelRequest(
        messages=(*ask.history, *ask.messages),
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
        reply = await client.call(request)
    except GatewayError as error:
        status = None if error.code == UNREACHABLE else error.status
        yield ModelCallFailed(
            ask.step, ask.kind, ask.conversation, key, status, error.code, str(error)
        )
        return
    yield ModelCallDone(
        step=ask.step,
        kind=ask.kind,
        conversation=ask.conversation,
        idempotency_key=key,
        request_id=reply.request_id,
        message=with_unique_ids(reply.message, _call_ids(ask.history)),
        finish_reason=finish_reason(reply, settings.max_tokens),
        usage=reply.usage,
        routing=reply.routing,
        latency_ms=reply.latency_ms,
    )


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
