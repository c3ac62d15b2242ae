"""Model calls in the JSON of chat completions: requests out, replies and refusals in."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from pydantic import TypeAdapter, ValidationError

from turnout.agent.tools.marks import broken
from turnout.core.ids import RequestId, ToolCallId
from turnout.core.inference import (
    Alternative,
    FinishReason,
    ModelReply,
    ModelRequest,
    RoutingReport,
)
from turnout.core.json import DEEPEST, JsonObject, JsonValue, as_object, as_objects, as_text
from turnout.core.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from turnout.core.tools import MCP, Tool, ToolCall, function_name
from turnout.core.usage import Usage
from turnout.errors import GatewayError

__all__ = ["INVALID_REPLY", "UNREACHABLE", "decode_error", "decode_reply", "encode_request"]

INVALID_REPLY = "invalid_reply"
"""Code of an answer with status 200 that is no completion."""

UNREACHABLE = "gateway_unreachable"
"""Code of a call to which no answer came."""

_QUOTED = 200
_MOST_ALTERNATIVES = 120
"""That are kept of a reply."""
_LONGEST_ERROR = 2_000


def encode_request(request: ModelRequest) -> bytes:
    """Return the body of a request, always valid UTF-8 JSON.

    Lone surrogates and NUL, which servers and databases refuse, become U+FFFD. What users and
    tools say cannot hold a mark that a server would take for another speaker's.
    """
    ask = request.routing
    routing: JsonObject = {
        "optimize": ask.optimize,
        "task": ask.task,
        "session": ask.session,
        "policy": ask.policy,
        "mcp_tools": _mcp_tools(request.tools) or None,
    }
    body: dict[str, JsonValue] = {
        "model": request.model,
        "messages": [_message(message) for message in request.messages],
        "routing": _present(routing),
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "seed": request.seed,
        "stop": list(request.stop) or None,
        "logprobs": True if request.alternatives else None,
        "top_logprobs": request.alternatives or None,
        "extended_thinking": request.thinking,
    }
    if request.tools or request.connections:
        connected = [_connected(name) for name in request.connections]
        body["tools"] = [*(_tool(tool) for tool in request.tools), *connected]
        body["tool_choice"] = _tool_choice(function_name(request.tool_choice))
    if request.response_schema is not None:
        schema: JsonObject = {"name": "reply", "schema": request.response_schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return json.dumps(_clean(_present(body)), ensure_ascii=False).encode()


def decode_reply(body: bytes, latency_ms: int, tools: Sequence[Tool] = ()) -> ModelReply:
    """Read the body of an answer with status 200; `GatewayError` where it is no completion.

    `tools`: what the request declared; calls name them as the agent does.
    """
    top = as_object(_parse(body))
    choices = as_objects(top.get("choices"))
    message = as_object(choices[0].get("message")) if choices else {}
    if not message:
        raise _invalid(body, "it has no message")
    calls = _calls(message, {function_name(tool.name): tool.name for tool in tools})
    return ModelReply(
        request_id=RequestId(as_text(top.get("id"))),
        message=AssistantMessage(
            content=_text(message.get("content")),
            tool_calls=calls,
            reasoning=as_text(message.get("reasoning_content"))
            or as_text(message.get("reasoning")),
            wire=json.dumps(message),
        ),
        finish_reason=_finish_reason(as_text(choices[0].get("finish_reason")), bool(calls)),
        usage=_usage(as_object(top.get("usage"))),
        routing=_routing(body, top.get("routing")),
        latency_ms=latency_ms,
        alternatives=_alternatives(choices[0], _text(message.get("content"))),
    )


def decode_error(status: int, body: bytes, retry_after: float | None) -> GatewayError:
    """Read the body of an answer with an error status, whatever it holds."""
    try:
        parsed = as_object(json.loads(body))
    except (ValueError, RecursionError):
        parsed = {}
    error = as_object(parsed.get("error"))
    message = as_text(error.get("message")) or as_text(parsed.get("error"))
    code = as_text(error.get("code")) or as_text(error.get("type")) or f"http_{status}"
    return GatewayError(
        message[:_LONGEST_ERROR]
        or f"The gateway answered {status} without saying why: {_quote(body)}",
        status=status,
        code=code,
        retry_after=retry_after,
        param=as_text(error.get("param")) or None,
    )


def _message(message: Message) -> JsonObject:
    match message:
        case SystemMessage():
            return {"role": "system", "content": message.content}
        case UserMessage():
            return {"role": "user", "content": broken(message.content)}
        case ToolMessage():
            content = broken(message.content)
            return {"role": "tool", "tool_call_id": message.tool_call_id, "content": content}
        case AssistantMessage(wire=wire) if wire:
            return _sendable(as_object(json.loads(wire)))
        case AssistantMessage():
            spoken: dict[str, JsonValue] = {
                "role": "assistant",
                "content": message.content or None,
            }
            if message.tool_calls:
                spoken["tool_calls"] = [_call(call) for call in message.tool_calls]
            return spoken


def _sendable(spoken: JsonObject) -> JsonObject:
    """Return a message with calls of names that every API takes: a model may have made some up."""
    if not spoken.get("tool_calls"):
        return spoken
    calls: list[JsonObject] = []
    for call in as_objects(spoken["tool_calls"]):
        function = as_object(call.get("function"))
        name = function_name(as_text(function.get("name")))
        calls.append({**call, "function": {**function, "name": name}})
    return {**spoken, "tool_calls": calls}


def _call(call: ToolCall) -> JsonObject:
    function = {"name": function_name(call.name), "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _tool(tool: Tool) -> JsonObject:
    function: JsonObject = {
        "name": function_name(tool.name),
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return {"type": "function", "function": function}


def _mcp_tools(tools: Sequence[Tool]) -> JsonObject:
    """Return which functions stand for tools of MCP servers, so that policy can judge these."""
    served = [tool.name for tool in tools if tool.name.startswith(MCP)]
    return {function_name(name): name.removeprefix(MCP) for name in served}


def _connected(name: str) -> JsonObject:
    """Return what has the gateway offer the tools of a connection, or one of them."""
    server, _, tool = name.partition("/")
    offered: JsonObject = (
        {"server": server, "allowed_tools": [tool]} if tool else {"server": server}
    )
    return {"type": "mcp", "mcp": offered}


def _tool_choice(choice: str) -> JsonValue:
    if choice in {"auto", "required", "none"}:
        return choice
    return {"type": "function", "function": {"name": choice}}


def _present(fields: JsonObject) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}


def _clean(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        whole = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return whole.replace("\0", "\ufffd")
    if isinstance(value, Mapping):
        return {as_text(_clean(name)): _clean(item) for name, item in value.items()}
    if isinstance(value, Sequence):
        return [_clean(item) for item in value]
    return value


def _parse(body: bytes) -> JsonValue:
    try:
        # A NaN is no JSON and could not be sent back.
        value: JsonValue = json.loads(body, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        raise _invalid(body, "it is not JSON") from None
    if body.count(b"[") + body.count(b"{") > DEEPEST and _is_deeper(value, DEEPEST):
        raise _invalid(body, f"it nests deeper than {DEEPEST} levels, and could not be sent back")
    return value


def _is_deeper(value: JsonValue, most: int) -> bool:
    level: list[JsonValue] = [value]
    for _ in range(most):
        level = [inner for outer in level for inner in _inside(outer)]
    return bool(level)


def _inside(value: JsonValue) -> Iterable[JsonValue]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def _calls(message: JsonObject, names: Mapping[str, str]) -> tuple[ToolCall, ...]:
    calls = []
    for call in as_objects(message.get("tool_calls")):
        function = as_object(call.get("function"))
        arguments = function.get("arguments")
        if not isinstance(arguments, str):
            arguments = "" if arguments is None else json.dumps(arguments)
        name = as_text(function.get("name"))
        called = ToolCall(ToolCallId(as_text(call.get("id"))), names.get(name, name), arguments)
        calls.append(called)
    return tuple(calls)


def _text(content: JsonValue) -> str:
    if isinstance(content, str):
        return content
    return "".join(as_text(part.get("text")) for part in as_objects(content))


def _finish_reason(reason: str, has_calls: bool) -> FinishReason:
    match reason:
        case "length" | "content_filter":
            return reason
        case _:
            return "tool_calls" if has_calls else "stop"


def _usage(usage: JsonObject) -> Usage:
    details = as_object(usage.get("prompt_tokens_details"))
    return Usage(
        input_tokens=_count(usage.get("prompt_tokens")),
        output_tokens=_count(usage.get("completion_tokens")),
        cache_read_input_tokens=_count(details.get("cached_tokens")),
        cache_creation_input_tokens=_count(details.get("cache_write_tokens")),
        estimated=not usage,
    )


def _alternatives(choice: JsonObject, content: str) -> tuple[Alternative, ...]:
    """Return the likeliest; none where the tokens, such as halves of a letter, are not the text."""
    found: list[Alternative] = []
    at = 0
    for token in as_objects(as_object(choice.get("logprobs")).get("content")):
        said = as_text(token.get("token"))
        for other in as_objects(token.get("top_logprobs")):
            text, logprob = as_text(other.get("token")), other.get("logprob")
            if text and text != said and isinstance(logprob, int | float):
                found.append(Alternative(at, text, said, float(logprob)))
        if not content.startswith(said, at):
            return ()
        at += len(said)
    found.sort(key=lambda each: -each.logprob)
    return tuple(found[:_MOST_ALTERNATIVES])


def _count(value: JsonValue) -> int:
    return max(0, value) if isinstance(value, int) else 0


@cache
def _routing_adapter() -> TypeAdapter[RoutingReport]:
    return TypeAdapter(RoutingReport)


def _routing(body: bytes, value: JsonValue) -> RoutingReport:
    try:
        return _routing_adapter().validate_python(value)
    except ValidationError:
        raise _invalid(body, "its `routing` object is missing or incomplete") from None


def _invalid(body: bytes, why: str) -> GatewayError:
    return GatewayError(
        f"The gateway's answer cannot be used: {why}. It starts with {_quote(body)}.",
        status=502,
        code=INVALID_REPLY,
        mend="Check that the base URL is a Turnout gateway's.",
    )


def _quote(body: bytes) -> str:
    return repr(body[:_QUOTED].decode(errors="backslashreplace"))
