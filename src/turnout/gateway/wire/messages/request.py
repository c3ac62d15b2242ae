"""A messages request: bytes in, `InferenceRequest` out."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from turnout.core.ids import ToolCallId
from turnout.core.json import JsonObject, JsonValue, as_object, as_objects, as_text
from turnout.errors import GatewayError
from turnout.gateway.exchange import ConnectionAsk, DeclaredTool, InferenceRequest
from turnout.gateway.wire.body import estimate_tokens, parse_body, topic
from turnout.gateway.wire.connections import connection_ask, declared_tools, server_ask
from turnout.gateway.wire.extensions import EXTENSIONS, read_extensions
from turnout.gateway.wire.fields import flag, invalid, items, objects, text
from turnout.gateway.wire.messages.content.parts import ROLES

__all__ = ["parse_messages_request"]

_DATED = re.compile(r"_\d{8}$")
_LONGEST_ID = 1_024
_MOST_TOOLS = 1_024
_PASSED_HEADERS = ("anthropic-version", "anthropic-beta")
_ATTACHMENTS = {"image": "image", "document": "file", "container_upload": "file"}


@dataclass(slots=True)
class _Survey:
    """What one look at every block of a conversation shows."""

    past_calls: list[ToolCallId] = field(default_factory=list)
    open_calls: list[ToolCallId] = field(default_factory=list)
    modalities: set[str] = field(default_factory=set)
    attachments: int = 0
    attached_size: int = 0
    asked: list[str] = field(default_factory=list)
    """What the user said last."""


def parse_messages_request(
    raw: bytes, headers: Mapping[str, str], *, counting: bool = False
) -> InferenceRequest:
    """Parse a request as far as routing and policy need; fields that we do not know are kept.

    `headers` has lower-case names; `counting`: nothing is to be generated. `GatewayError` (400)
    names the field that is wrong.
    """
    body = parse_body(raw)
    model = text(body, "model", "model")
    if model is None:
        raise invalid("`model` is missing.", "model", mend="Send `auto` or a model id.")
    _refuse_thread(body)
    seen = _survey(body)
    declared = _declared(body)
    extensions = read_extensions(body, headers)
    asks_task = extensions.ask.task is None
    return InferenceRequest(
        body={name: value for name, value in body.items() if name not in EXTENSIONS},
        model=model,
        stream=not counting and (flag(body, "stream", "stream") or False),
        include_usage=True,
        tools=declared.tools,
        tool_choice=_tool_choice(body, declared.tools),
        max_tokens=_max_tokens(body),
        open_calls=tuple(seen.open_calls),
        ask=extensions.ask,
        session=extensions.session,
        input_tokens_estimate=estimate_tokens(len(raw) - seen.attached_size, seen.attachments),
        wants_json_schema=_wants_json_schema(body),
        thinking=_thinking(body) if extensions.thinking is None else extensions.thinking,
        call_kind=extensions.call_kind,
        idempotency_key=None if counting else extensions.idempotency_key,
        trace=extensions.trace,
        shape="messages",
        topic=topic(_standing(body), seen.asked) if asks_task else "",
        modalities=frozenset(seen.modalities),
        past_calls=tuple(seen.past_calls),
        connections=declared.connections,
        headers={name: headers[name] for name in _PASSED_HEADERS if name in headers},
    )


def _refuse_thread(body: JsonObject) -> None:
    """Refuse a conversation whose beginning one provider holds: any may be asked next.

    The SDK goes on without a thread where it reads this code.
    """
    if body.get("thread") is not None:
        raise GatewayError(
            "Threads are not kept here.",
            status=400,
            code="thread_unsupported_request",
            mend="Send the whole conversation without `thread`.",
            param="thread",
        )


def _survey(body: JsonObject) -> _Survey:
    messages = items(body, "messages", "messages")
    if not messages:
        raise invalid("`messages` must hold at least one message.", "messages")
    seen = _Survey()
    for position, message in enumerate(messages):
        path = f"messages.{position}"
        role = message.get("role")
        if role not in ROLES:
            raise invalid(
                f"`{path}.role` must be user, assistant or system.",
                f"{path}.role",
                mend="Tool results are blocks of a user message.",
            )
        if role == "assistant":
            seen.open_calls.clear()
        said = _look_into(message.get("content"), f"{path}.content", seen)
        if said and role == "user":
            seen.asked = said
    return seen


def _look_into(content: JsonValue, path: str, seen: _Survey) -> list[str]:
    """Take one message in and return its texts."""
    if content is None or isinstance(content, str):
        return [content] if content else []
    if not isinstance(content, list):
        raise invalid(f"`{path}` must be a text or a list.", path)
    said: list[str] = []
    for at, block in enumerate(content):
        _look_at(block, f"{path}.{at}", seen, said)
    return said


def _look_at(block: JsonValue, path: str, seen: _Survey, said: list[str]) -> None:
    if not isinstance(block, dict):
        raise invalid(f"`{path}` must be an object.", path)
    kind = text(block, "type", f"{path}.type")
    match kind:
        case None:
            raise invalid(f"`{path}.type` is missing.", f"{path}.type")
        case "text":
            words = block.get("text")
            if not isinstance(words, str):
                raise invalid(f"`{path}.text` must be a text.", f"{path}.text")
            said.append(words)
        case "tool_use":
            _required(block, "name", path)
            seen.past_calls.append(ToolCallId(_required(block, "id", path)))
        case "tool_result":
            seen.open_calls.append(ToolCallId(_required(block, "tool_use_id", path)))
            for inner in as_objects(block.get("content")):
                _attach(inner, seen)
        case _:
            _attach(block, seen)


def _required(block: JsonObject, name: str, path: str) -> str:
    value = text(block, name, f"{path}.{name}", longest=_LONGEST_ID)
    if value is None:
        raise invalid(f"`{path}.{name}` is missing.", f"{path}.{name}")
    return value


def _attach(block: JsonObject, seen: _Survey) -> None:
    modality = _ATTACHMENTS.get(as_text(block.get("type")))
    source = as_object(block.get("source"))
    if modality is None or source.get("type") in {"text", "content"}:
        return
    seen.modalities.add(modality)
    seen.attachments += 1
    seen.attached_size += len(as_text(source.get("data")))


def _standing(body: JsonObject) -> Iterator[str]:
    system = body.get("system")
    yield as_text(system)
    for block in as_objects(system):
        yield as_text(block.get("text"))


@dataclass(frozen=True, slots=True)
class _Declared:
    tools: tuple[DeclaredTool, ...]
    connections: tuple[ConnectionAsk, ...]


def _declared(body: JsonObject) -> _Declared:
    """Return every tool, one that has a type of its own by that type without its date."""
    names: dict[DeclaredTool, None] = {}
    asks: list[ConnectionAsk] = []
    for position, server in enumerate(items(body, "mcp_servers", "mcp_servers")):
        asks.append(server_ask(server, f"mcp_servers.{position}"))
    for position, tool in enumerate(items(body, "tools", "tools")):
        path = f"tools.{position}"
        if (ask := connection_ask(tool, path)) is not None:
            asks.append(ask)
            continue
        kind = text(tool, "type", f"{path}.type") or "custom"
        name = text(tool, "name", f"{path}.name")
        if kind != "custom":
            names[DeclaredTool(_DATED.sub("", kind))] = None
        elif name is None:
            raise invalid(f"`{path}.name` is missing.", f"{path}.name")
        if name is not None:
            names[DeclaredTool(name)] = None
    for ask in asks:
        names |= dict.fromkeys(declared_tools(ask))
    if len(names) > _MOST_TOOLS:
        raise invalid(f"`tools` holds more than {_MOST_TOOLS} tools.", "tools")
    return _Declared(tuple(names), tuple(asks))


def _tool_choice(body: JsonObject, tools: Sequence[DeclaredTool]) -> str:
    choice = objects(body, "tool_choice", "tool_choice")
    match None if choice is None else choice.get("type"):
        case None | "auto":
            return "auto"
        case "any":
            return "required"
        case "none":
            return "none"
        case "tool":
            name = text(choice or {}, "name", "tool_choice.name")
            if name in {tool.name for tool in tools}:
                return name or ""
            raise invalid(
                f"`tool_choice` names `{name}`, which `tools` does not hold.", "tool_choice"
            )
        case _:
            raise invalid("`tool_choice.type` must be auto, any, tool or none.", "tool_choice.type")


def _max_tokens(body: JsonObject) -> int | None:
    value = body.get("max_tokens")
    if value is None:
        return None
    # 0 fills the prompt cache and generates nothing.
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise invalid("`max_tokens` must be an integer, 0 or above.", "max_tokens")
    return value


def _thinking(body: JsonObject) -> bool | None:
    wanted = objects(body, "thinking", "thinking")
    return None if wanted is None else wanted.get("type") != "disabled"


def _wants_json_schema(body: JsonObject) -> bool:
    config = objects(body, "output_config", "output_config") or {}
    wanted = objects(config, "format", "output_config.format") or as_object(
        body.get("output_format")
    )
    return wanted.get("type") == "json_schema"
