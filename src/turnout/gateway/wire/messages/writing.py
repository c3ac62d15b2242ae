"""A conversation as a messages body."""

from collections.abc import Iterator, Sequence

from turnout.core.json import JsonObject, JsonValue
from turnout.gateway.catalog import Deployment
from turnout.gateway.dialog.conversation import (
    Call,
    Conversation,
    Part,
    Result,
    Text,
    ToolSpec,
    Turn,
)
from turnout.gateway.dialog.custom import as_function
from turnout.gateway.exchange import InferenceRequest
from turnout.gateway.wire.messages.content.blocks import CACHE_MARK, write_block
from turnout.gateway.wire.messages.content.identifiers import Identifiers

__all__ = ["write_conversation"]

_CHOICES = {"auto": "auto", "required": "any", "none": "none"}


def write_conversation(
    said: Conversation, request: InferenceRequest, deployment: Deployment
) -> dict[str, JsonValue]:
    """Return the body that says it, tools left out that providers of other shapes run.

    `GatewayError` (400) where the conversation holds what this shape cannot say.
    """
    standing, turns = _split(said.turns)
    body: dict[str, JsonValue] = {
        "model": deployment.upstream_name,
        "max_tokens": said.sampling.max_tokens or deployment.max_output,
    }
    if standing:
        body["system"] = standing
    body["messages"] = _messages(turns, thoughts_back=deployment.reasoning_back)
    tools = [
        tool for tool in said.tools if tool.foreign is None or tool.foreign.shape == "messages"
    ]
    if tools:
        body["tools"] = [_tool(as_function(tool), deployment) for tool in tools]
        if choice := _tool_choice(said, tools):
            body["tool_choice"] = choice
    body |= _sampling(said)
    if said.schema is not None:
        form: JsonObject = {"type": "json_schema", "schema": said.schema.schema}
        body["output_config"] = {"format": form}
    if said.end_user:
        body["metadata"] = {"user_id": said.end_user}
    if request.stream:
        body["stream"] = True
    return body


def _split(turns: Sequence[Turn]) -> tuple[JsonValue, Sequence[Turn]]:
    """Return the standing instructions and the rest, of which at least one turn must stay."""
    first = next((at for at, turn in enumerate(turns) if turn.role != "system"), len(turns))
    if first == len(turns) and turns:
        first -= 1
    texts = [part for turn in turns[:first] for part in turn.parts if isinstance(part, Text)]
    texts = [part for part in texts if part.text.strip()]
    if len(texts) == 1 and not texts[0].cached:
        return texts[0].text, turns[first:]
    blocks: list[JsonValue] = [
        {"type": "text", "text": part.text} | ({"cache_control": CACHE_MARK} if part.cached else {})
        for part in texts
    ]
    return blocks, turns[first:]


def _messages(turns: Sequence[Turn], *, thoughts_back: bool) -> list[JsonValue]:
    """Return the turns as messages of sides that alternate, results before all else."""
    ids = Identifiers()
    messages: list[JsonValue] = []
    for role, parts in _sides(turns):
        written = (write_block(part, ids, thoughts_back=thoughts_back) for part in parts)
        blocks: list[JsonValue] = [block for block in written if block is not None]
        if blocks:
            messages.append({"role": role, "content": _shortest(blocks)})
    return messages


def _sides(turns: Sequence[Turn]) -> Iterator[tuple[str, list[Part]]]:
    role, parts = "", list[Part]()
    for turn in turns:
        side = "assistant" if turn.role == "assistant" else "user"
        if side != role and parts:
            yield role, _ordered(role, parts)
            parts = []
        role = side
        parts.extend(turn.parts)
    if parts:
        yield role, _ordered(role, parts)


def _ordered(role: str, parts: list[Part]) -> list[Part]:
    if role == "user":
        return sorted(parts, key=lambda part: not isinstance(part, Result))
    # Some clients send the calls of one answer twice, in two fields.
    seen: set[str] = set()
    once: list[Part] = []
    for part in parts:
        if isinstance(part, Call):
            if part.id in seen:
                continue
            seen.add(part.id)
        once.append(part)
    return once


def _shortest(blocks: list[JsonValue]) -> JsonValue:
    match blocks:
        case [{"type": "text", "text": str(text), **rest}] if not rest:
            return text
        case _:
            return blocks


def _tool(tool: ToolSpec, deployment: Deployment) -> JsonObject:
    if tool.foreign is not None:
        return tool.foreign.value
    parameters = tool.parameters or {}
    written: dict[str, JsonValue] = {"name": tool.name}
    if tool.description:
        written["description"] = tool.description
    written["input_schema"] = (
        parameters if "type" in parameters else {"type": "object"} | dict(parameters)
    )
    if tool.strict and deployment.json_schema:
        written["strict"] = True
    if tool.cached:
        written["cache_control"] = CACHE_MARK
    return written


def _tool_choice(said: Conversation, tools: Sequence[ToolSpec]) -> JsonObject | None:
    kind = _CHOICES.get(said.tool_choice, "tool")
    if kind == "tool" and said.tool_choice not in {tool.name for tool in tools}:
        kind = "auto"
    choice: dict[str, JsonValue] = {"type": kind}
    if kind == "tool":
        choice["name"] = said.tool_choice
    if said.parallel_calls is False and kind != "none":
        choice["disable_parallel_tool_use"] = True
    return None if choice == {"type": "auto"} else choice


def _sampling(said: Conversation) -> dict[str, JsonValue]:
    drawn, body = said.sampling, dict[str, JsonValue]()
    if drawn.temperature is not None:
        # Other shapes go up to 2.
        body["temperature"] = min(1.0, max(0.0, drawn.temperature))
    if drawn.top_p is not None:
        body["top_p"] = drawn.top_p
    if drawn.top_k is not None:
        body["top_k"] = drawn.top_k
    if stops := [stop for stop in drawn.stop if stop.strip()]:
        body["stop_sequences"] = stops
    return body
