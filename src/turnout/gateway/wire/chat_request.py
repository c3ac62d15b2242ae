"""A chat completions request: bytes in, `InferenceRequest` out."""

from collections.abc import Mapping, Sequence

import orjson

from turnout.core.ids import ToolCallId
from turnout.core.json import JsonObject
from turnout.gateway.exchange import DeclaredTool, InferenceRequest
from turnout.gateway.wire.extensions import EXTENSIONS, read_extensions
from turnout.gateway.wire.fields import flag, invalid, items, objects, positive, text

__all__ = ["parse_chat_request"]

_BYTES_PER_TOKEN = 4
_TOKENS_PER_ATTACHMENT = 1_000
_DEEPEST = 250
_MOST_TOOLS = 1_024


def parse_chat_request(raw: bytes, headers: Mapping[str, str]) -> InferenceRequest:
    """Parse a request as far as routing and policy need; fields that we do not know are kept.

    `headers` has lower-case names. `GatewayError` (400) names the field that is wrong.
    """
    body = _parse_object(raw)
    model = text(body, "model", "model")
    if model is None:
        raise invalid("`model` is missing.", "model", mend="Send `auto` or a model id.")
    messages = _messages(body)
    tools = _tools(body)
    options = objects(body, "stream_options", "stream_options") or {}
    extensions = read_extensions(body, headers)
    return InferenceRequest(
        body={name: value for name, value in body.items() if name not in EXTENSIONS},
        model=model,
        stream=flag(body, "stream", "stream") or False,
        include_usage=flag(options, "include_usage", "stream_options.include_usage") or False,
        tools=tools,
        tool_choice=_tool_choice(body, tools),
        max_tokens=positive(body, "max_completion_tokens", "max_completion_tokens")
        or positive(body, "max_tokens", "max_tokens"),
        open_calls=_open_calls(messages),
        ask=extensions.ask,
        session=extensions.session,
        input_tokens_estimate=_estimate_tokens(raw, messages),
        wants_json_schema=_wants_json_schema(body),
        thinking=extensions.thinking,
        call_kind=extensions.call_kind,
        idempotency_key=extensions.idempotency_key,
    )


def _parse_object(raw: bytes) -> JsonObject:
    try:
        body = orjson.loads(raw)
        # What nests deeper than orjson writes could not be sent on.
        if raw.count(b"[") + raw.count(b"{") > _DEEPEST:
            orjson.dumps(body)
    except orjson.JSONDecodeError as error:
        raise invalid(f"The body is not JSON: {error}.", None) from error
    except orjson.JSONEncodeError as error:
        raise invalid(f"The body nests deeper than {_DEEPEST} levels.", None) from error
    if not isinstance(body, dict):
        raise invalid("The body must be a JSON object.", None)
    return body


def _messages(body: JsonObject) -> Sequence[JsonObject]:
    messages = items(body, "messages", "messages")
    if not messages:
        raise invalid("`messages` must hold at least one message.", "messages")
    for position, message in enumerate(messages):
        path = f"messages[{position}]"
        if text(message, "role", f"{path}.role") is None:
            raise invalid(f"`{path}.role` is missing.", f"{path}.role")
        if (
            message["role"] == "tool"
            and text(message, "tool_call_id", f"{path}.tool_call_id", longest=1_024) is None
        ):
            raise invalid(f"`{path}.tool_call_id` is missing.", f"{path}.tool_call_id")
    return messages


def _tools(body: JsonObject) -> tuple[DeclaredTool, ...]:
    """Return every tool of the request, by whichever field it is switched on."""
    declared = []
    for position, tool in enumerate(items(body, "tools", "tools")):
        path = f"tools[{position}]"
        kind = text(tool, "type", f"{path}.type")
        if kind is None:
            raise invalid(f"`{path}.type` is missing.", f"{path}.type")
        detail = objects(tool, kind, f"{path}.{kind}") or {}
        name = text(detail, "name", f"{path}.{kind}.name")
        if name is None and kind in {"custom", "function"}:
            raise invalid(f"`{path}.{kind}.name` is missing.", f"{path}.{kind}.name")
        declared.append(DeclaredTool(name or kind))
    for position, function in enumerate(items(body, "functions", "functions")):
        path = f"functions[{position}].name"
        name = text(function, "name", path)
        if name is None:
            raise invalid(f"`{path}` is missing.", path)
        declared.append(DeclaredTool(name))
    if body.get("web_search_options") is not None:
        declared.append(DeclaredTool("web_search"))
    if len(declared) > _MOST_TOOLS:
        raise invalid(f"`tools` holds more than {_MOST_TOOLS} tools.", "tools")
    return tuple(declared)


def _tool_choice(body: JsonObject, tools: Sequence[DeclaredTool]) -> str:
    choice = body.get("tool_choice")
    if choice is None or choice in ("auto", "required", "none"):
        return str(choice or "auto")
    if isinstance(choice, dict):
        kind = text(choice, "type", "tool_choice.type") or ""
        detail = objects(choice, kind, f"tool_choice.{kind}") or {}
        if kind == "allowed_tools":
            return str(detail.get("mode") or "auto")
        name = text(detail, "name", f"tool_choice.{kind}.name") or kind
        if name in {tool.name for tool in tools}:
            return name
        raise invalid(f"`tool_choice` names `{name}`, which `tools` does not hold.", "tool_choice")
    raise invalid(
        "`tool_choice` must be auto, required, none, or an object that names a tool.",
        "tool_choice",
    )


def _open_calls(messages: Sequence[JsonObject]) -> tuple[ToolCallId, ...]:
    found: list[ToolCallId] = []
    for message in reversed(messages):
        if message["role"] != "tool":
            break
        found.append(ToolCallId(str(message["tool_call_id"])))
    return tuple(reversed(found))


def _estimate_tokens(raw: bytes, messages: Sequence[JsonObject]) -> int:
    """Count the body by its size, with images and other attachments at a flat rate."""
    size, attachments = len(raw), 0
    for message in messages:
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict) and part.get("type") not in {"text", "refusal"}:
                attachments += 1
                size -= len(orjson.dumps(part))
    return max(1, size // _BYTES_PER_TOKEN) + attachments * _TOKENS_PER_ATTACHMENT


def _wants_json_schema(body: JsonObject) -> bool:
    wanted = objects(body, "response_format", "response_format") or {}
    return wanted.get("type") == "json_schema"
