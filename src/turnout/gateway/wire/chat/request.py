"""A chat completions request: bytes in, `InferenceRequest` out."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import orjson

from turnout.core.ids import ToolCallId
from turnout.core.json import JsonObject, as_objects, as_text
from turnout.gateway.exchange import ConnectionAsk, DeclaredTool, InferenceRequest
from turnout.gateway.wire.body import estimate_tokens, parse_body, topic
from turnout.gateway.wire.connections import connection_ask, declared_tools
from turnout.gateway.wire.extensions import EXTENSIONS, read_extensions
from turnout.gateway.wire.fields import flag, invalid, items, objects, positive, text

__all__ = ["parse_request"]

_MOST_TOOLS = 1_024
_KINDS = {"image_url": "image", "input_audio": "audio", "file": "file"}
_ROLES = frozenset({"assistant", "developer", "system", "tool", "user"})
_NAMED = frozenset({"custom", "function"})
_SWITCHES = {
    "enable_search": "web_search",
    "mcp_servers": "mcp",
    "search_parameters": "web_search",
}
"""Fields of some providers that switch a tool of theirs on."""
_LONGEST_ID = 1_024
_PASSED = ("openai-beta",)
"""Headers of clients that upstreams of this shape know."""


def parse_request(raw: bytes, headers: Mapping[str, str]) -> InferenceRequest:
    """Parse a request as far as routing and policy need; fields that we do not know are kept.

    `headers` has lower-case names. `GatewayError` (400) names the field that is wrong.
    """
    body = parse_body(raw)
    model = text(body, "model", "model")
    if model is None:
        raise invalid("`model` is missing.", "model", mend="Send `auto` or a model id.")
    messages = _messages(body)
    tools, connections = _tools(body)
    options = objects(body, "stream_options", "stream_options") or {}
    _check_choices(body)
    extensions = read_extensions(body, headers)
    seen = _look(raw, messages)
    return InferenceRequest(
        body={name: value for name, value in body.items() if name not in EXTENSIONS},
        model=model,
        stream=flag(body, "stream", "stream") or False,
        include_usage=flag(options, "include_usage", "stream_options.include_usage") or False,
        tools=tools,
        tool_choice=_tool_choice(body, tools),
        max_tokens=_max_tokens(body),
        open_calls=_open_calls(messages),
        ask=extensions.ask,
        session=extensions.session,
        input_tokens_estimate=seen.tokens,
        wants_json_schema=_wants_json_schema(body),
        thinking=extensions.thinking,
        call_kind=extensions.call_kind,
        idempotency_key=extensions.idempotency_key,
        trace=extensions.trace,
        topic=_topic(messages) if extensions.ask.task is None else "",
        modalities=seen.modalities,
        past_calls=seen.past_calls,
        connections=connections,
        headers={name: headers[name] for name in _PASSED if name in headers},
    )


def _messages(body: JsonObject) -> Sequence[JsonObject]:
    messages = items(body, "messages", "messages")
    if not messages:
        raise invalid("`messages` must hold at least one message.", "messages")
    for position, message in enumerate(messages):
        role = message.get("role")
        known = isinstance(role, str) and role in _ROLES
        if not known or (role == "tool" and not message.get("tool_call_id")):
            _check_role(message, position)
        elif role == "tool":
            path = f"messages[{position}].tool_call_id"
            text(message, "tool_call_id", path, longest=_LONGEST_ID)
    return messages


def _check_role(message: JsonObject, position: int) -> None:
    """Refuse a message without a role, or a result without its call; other roles may pass."""
    path = f"messages[{position}]"
    if text(message, "role", f"{path}.role") is None:
        raise invalid(f"`{path}.role` is missing.", f"{path}.role")
    if message["role"] == "tool":
        text(message, "tool_call_id", f"{path}.tool_call_id")
        raise invalid(f"`{path}.tool_call_id` is missing.", f"{path}.tool_call_id")


def _max_tokens(body: JsonObject) -> int | None:
    """Return the most that one answer may be long; of two limits upstreams heed either."""
    said = (positive(body, name, name) for name in ("max_completion_tokens", "max_tokens"))
    return max((limit for limit in said if limit is not None), default=None)


def _check_choices(body: JsonObject) -> None:
    """Refuse a number of answers that nobody can count on, and models besides `model`."""
    positive(body, "n", "n")
    if body.get("models") is not None:
        raise invalid(
            "`models` is not served: the gateway chooses the models that stand in.",
            "models",
            mend="Send `model` alone; the policy says what becomes of it where it fails.",
        )


def _switched_on(body: JsonObject) -> Iterator[DeclaredTool]:
    """Yield the tools of providers that fields of their own switch on."""
    for field, tool in _SWITCHES.items():
        if body.get(field):
            yield DeclaredTool(tool)
    if body.get("web_search_options") is not None:
        yield DeclaredTool("web_search")
    for position, plugin in enumerate(items(body, "plugins", "plugins")):
        path = f"plugins[{position}].id"
        name = text(plugin, "id", path)
        if name is None:
            raise invalid(f"`{path}` is missing.", path)
        yield DeclaredTool(name)


def _tools(body: JsonObject) -> tuple[tuple[DeclaredTool, ...], tuple[ConnectionAsk, ...]]:
    """Return every tool of the request, by whichever field it is switched on."""
    declared: list[DeclaredTool] = []
    connections: list[ConnectionAsk] = []
    for position, tool in enumerate(items(body, "tools", "tools")):
        path = f"tools[{position}]"
        kind = text(tool, "type", f"{path}.type")
        if kind is None:
            raise invalid(f"`{path}.type` is missing.", f"{path}.type")
        if (ask := connection_ask(tool, path)) is not None:
            connections.append(ask)
            declared += declared_tools(ask)
            continue
        declared.append(DeclaredTool(_name(tool, kind, path) if kind in _NAMED else kind))
    for position, function in enumerate(items(body, "functions", "functions")):
        path = f"functions[{position}].name"
        name = text(function, "name", path)
        if name is None:
            raise invalid(f"`{path}` is missing.", path)
        declared.append(DeclaredTool(name))
    declared += _switched_on(body)
    if len(declared) > _MOST_TOOLS:
        raise invalid(f"`tools` holds more than {_MOST_TOOLS} tools.", "tools")
    return tuple(declared), tuple(connections)


def _name(tool: JsonObject, kind: str, path: str) -> str:
    """Return the name of a tool that the client runs; one of a provider goes by its type."""
    detail = objects(tool, kind, f"{path}.{kind}") or {}
    name = text(detail, "name", f"{path}.{kind}.name")
    if name is None:
        raise invalid(f"`{path}.{kind}.name` is missing.", f"{path}.{kind}.name")
    if tool.get("name", name) != name:
        # Providers differ in which of the two they read; policy could judge only one.
        raise invalid(f"`{path}.name` is another name than its {kind}'s.", f"{path}.name")
    return name


def _tool_choice(body: JsonObject, tools: Sequence[DeclaredTool]) -> str:
    choice = body.get("tool_choice")
    if choice is None and body.get("function_call") is not None:
        return _old_choice(body, tools)
    if choice is None or choice in ("auto", "required", "none"):
        return str(choice or "auto")
    if isinstance(choice, dict):
        kind = text(choice, "type", "tool_choice.type") or ""
        if kind == "mcp":
            return "required"
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


def _old_choice(body: JsonObject, tools: Sequence[DeclaredTool]) -> str:
    """Return the choice in the form that came before `tool_choice`."""
    choice = body["function_call"]
    name = choice.get("name") if isinstance(choice, dict) else None
    if isinstance(name, str) and name in {tool.name for tool in tools}:
        return name
    if choice in ("auto", "none"):
        return str(choice)
    raise invalid(
        "`function_call` must be auto, none, or name a function that `functions` holds.",
        "function_call",
    )


def _open_calls(messages: Sequence[JsonObject]) -> tuple[ToolCallId, ...]:
    found: list[ToolCallId] = []
    for message in reversed(messages):
        if message["role"] != "tool":
            break
        found.append(ToolCallId(str(message["tool_call_id"])))
    return tuple(reversed(found))


class _Seen(NamedTuple):
    """What a look at every message shows."""

    tokens: int
    modalities: frozenset[str]
    past_calls: tuple[ToolCallId, ...]


def _look(raw: bytes, messages: Sequence[JsonObject]) -> _Seen:
    """Count the body by its size, with images and other attachments at a flat rate."""
    size, attachments = len(raw), 0
    kinds: set[str] = set()
    calls: list[ToolCallId] = []
    for message in messages:
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict) and part.get("type") not in {"text", "refusal"}:
                attachments += 1
                size -= len(orjson.dumps(part))
                # What nobody knows is for the provider to judge: no deployment states it.
                if kind := _KINDS.get(as_text(part.get("type"))):
                    kinds.add(kind)
        if message.get("tool_calls"):
            calls += [ToolCallId(as_text(c.get("id"))) for c in as_objects(message["tool_calls"])]
    return _Seen(estimate_tokens(size, attachments), frozenset(kinds), tuple(calls))


def _topic(messages: Sequence[JsonObject]) -> str:
    standing = next((m for m in messages if m["role"] in ("system", "developer")), {})
    asked = next((m for m in reversed(messages) if m["role"] == "user"), {})
    return topic(_texts(standing), _texts(asked))


def _texts(message: JsonObject) -> Iterator[str]:
    content = message.get("content")
    if isinstance(content, str):
        yield content
    for part in as_objects(content):
        yield as_text(part.get("text"))


def _wants_json_schema(body: JsonObject) -> bool:
    wanted = objects(body, "response_format", "response_format") or {}
    return wanted.get("type") == "json_schema"
