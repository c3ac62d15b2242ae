"""A conversation of no shape as the body of a chat completions request."""

from collections.abc import Iterator, Sequence
from typing import assert_never

from turnout.core.json import JsonObject, JsonValue
from turnout.gateway.catalog import Deployment
from turnout.gateway.dialog.conversation import (
    Call,
    Conversation,
    Foreign,
    Media,
    Part,
    Reasoning,
    Refusal,
    Result,
    Sampling,
    Text,
    ToolSpec,
    Turn,
)
from turnout.gateway.dialog.custom import as_function, wrap
from turnout.gateway.exchange import InferenceRequest
from turnout.gateway.wire.fields import invalid

__all__ = ["write_body"]

_AUDIO = "data:audio/"
_EMPTY = 2
"""Fields of an answer that says nothing."""


def write_body(
    said: Conversation, request: InferenceRequest, deployment: Deployment
) -> dict[str, JsonValue]:
    """Return the body; `GatewayError` (400) for a tool that only another shape can declare."""
    written = _Messages(deployment)
    messages: list[JsonValue] = [message for turn in said.turns for message in written.of(turn)]
    body: dict[str, JsonValue] = {"model": deployment.upstream_name, "messages": messages}
    body |= _sampled(said.sampling)
    if tools := _known(said):
        body["tools"] = [_tool(tool) for tool in tools]
        if said.tool_choice != "auto":
            body["tool_choice"] = _choice(said)
        if said.parallel_calls is not None:
            body["parallel_tool_calls"] = said.parallel_calls
    if form := _format(said):
        body["response_format"] = form
    if said.effort is not None:
        body["reasoning_effort"] = said.effort
    if said.end_user is not None:
        body["user"] = said.end_user
    if request.stream:
        body["stream"] = True
    return body


class _Messages:
    """Turns as messages that one deployment takes."""

    def __init__(self, deployment: Deployment) -> None:
        self._reasoning_field = deployment.reasoning_field
        self._marks = deployment.caching == "marks"
        self._begun = False

    def of(self, turn: Turn) -> Iterator[JsonObject]:
        """Yield a turn's messages: each result is one of its own, before the rest."""
        self._begun = self._begun or turn.role != "system"
        rest: list[Part] = []
        for part in turn.parts:
            if not isinstance(part, Result):
                rest.append(part)
                continue
            content = self._content(part.parts, plain=True)
            yield {"role": "tool", "tool_call_id": part.call_id, "content": content}
            # A tool message takes words alone.
            rest += [inner for inner in part.parts if isinstance(inner, Media)]
        if not rest and turn.parts:
            return
        named: JsonObject = {"name": turn.name} if turn.name else {}
        if turn.role == "assistant":
            if message := self._answer(rest):
                yield {**message, **named}
            return
        content = self._content(rest, plain=turn.role == "system")
        if content or not turn.parts:
            # Many servers take instructions at the beginning alone.
            yield {"role": "user" if self._begun else "system", "content": content, **named}

    def _answer(self, parts: Sequence[Part]) -> JsonObject | None:
        content = self._content(parts, plain=True)
        calls: list[JsonValue] = [_call(part) for part in parts if isinstance(part, Call)]
        thought = "".join(part.text for part in parts if isinstance(part, Reasoning))
        refusal = "".join(part.text for part in parts if isinstance(part, Refusal))
        message: dict[str, JsonValue] = {"role": "assistant", "content": content or None}
        if thought:
            message[self._reasoning_field] = thought
        if refusal:
            message["refusal"] = refusal
        if calls:
            message["tool_calls"] = calls
        for part in parts:
            if isinstance(part, Foreign) and part.shape == "chat" and "audio" in part.value:
                message |= part.value
        # What only another shape can say, such as a thought nobody may read, leaves nothing.
        return message if len(message) > _EMPTY or content else None

    def _content(self, parts: Sequence[Part], *, plain: bool) -> JsonValue:
        """Return words alone as a string, what also holds other things as a list of parts."""
        words = [part for part in parts if isinstance(part, Text) and part.text]
        marked = self._marks and any(part.cached for part in words)
        if plain and not marked:
            return "\n\n".join(part.text for part in words)
        if len(words) == len(parts) == 1 and not marked:
            return words[0].text
        shown = [self._part(part) for part in (words if plain else parts)]
        return [part for part in shown if part is not None]

    def _part(self, part: Part) -> JsonObject | None:
        match part:
            case Text():
                mark: JsonObject = {"cache_control": {"type": "ephemeral"}}
                cached = mark if part.cached and self._marks else {}
                return {"type": "text", "text": part.text, **cached} if part.text else None
            case Media():
                return _media(part)
            case Foreign():
                return part.value if part.shape == "chat" else None
            case Refusal() | Reasoning() | Call() | Result():
                return None
            case _:
                assert_never(part)


def _call(call: Call) -> JsonObject:
    arguments = wrap(call.arguments) if call.type == "custom" else call.arguments
    function: JsonObject = {"name": call.name, "arguments": arguments or "{}"}
    return {"id": call.id, "type": "function", "function": function}


def _media(media: Media) -> JsonObject:
    match media.kind:
        case "image":
            detail: JsonObject = {"detail": media.detail} if media.detail else {}
            return {"type": "image_url", "image_url": {"url": media.url, **detail}}
        case "audio":
            kind, _, data = media.url.removeprefix(_AUDIO).partition(";base64,")
            return {"type": "input_audio", "input_audio": {"data": data, "format": kind}}
        case "file":
            name = media.name or "file"
            return {"type": "file", "file": {"filename": name, "file_data": media.url}}
        case _:
            assert_never(media.kind)


def _known(said: Conversation) -> Sequence[ToolSpec]:
    """Return the tools that this shape can declare; a provider's own of another are left out."""
    known = [t for t in said.tools if t.foreign is None or t.type == "custom" or _is_ours(t)]
    names = {tool.name for tool in known}
    missing = [tool.name for tool in said.tools if tool.name not in names]
    if missing and (not known or said.tool_choice in missing):
        raise invalid(
            f"The tool `{missing[0]}` is one that no deployment which may serve this knows.",
            "tools",
            mend="Leave it out, or name a model whose provider runs it.",
        )
    return known


def _is_ours(tool: ToolSpec) -> bool:
    return tool.foreign is not None and tool.foreign.shape == "chat"


def _tool(tool: ToolSpec) -> JsonObject:
    tool = as_function(tool)
    if tool.foreign is not None:
        return tool.foreign.value
    function: dict[str, JsonValue] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    if tool.parameters is not None:
        function["parameters"] = tool.parameters
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def _choice(said: Conversation) -> JsonValue:
    if said.tool_choice in ("required", "none"):
        return said.tool_choice
    return {"type": "function", "function": {"name": said.tool_choice}}


def _format(said: Conversation) -> JsonObject | None:
    if said.schema is None:
        return {"type": "json_object"} if said.any_json else None
    wanted: dict[str, JsonValue] = {"name": said.schema.name, "schema": said.schema.schema}
    if said.schema.strict is not None:
        wanted["strict"] = said.schema.strict
    if said.schema.description:
        wanted["description"] = said.schema.description
    return {"type": "json_schema", "json_schema": wanted}


def _sampled(sampling: Sampling) -> dict[str, JsonValue]:
    fields: dict[str, JsonValue] = {
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "stop": list(sampling.stop) or None,
        "seed": sampling.seed,
        "frequency_penalty": sampling.frequency_penalty,
        "presence_penalty": sampling.presence_penalty,
    }
    return {name: value for name, value in fields.items() if value is not None}
