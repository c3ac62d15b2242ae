"""What a request says to the gateway rather than to the model: routing, session, call kind."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, get_args

from turnout.core.ids import SessionId
from turnout.core.inference import CALL_KIND_HEADER, Objective, RoutingAsk, StepKind, TaskKind
from turnout.core.json import JsonObject, JsonValue
from turnout.core.observe.spans import TraceParent, parse_traceparent
from turnout.core.tools import MCP, function_name
from turnout.gateway.wire.fields import (
    LONGEST_NAME,
    flag,
    invalid,
    near,
    objects,
    one_of,
    text,
)

__all__ = ["EXTENSIONS", "Extensions", "read_extensions"]

EXTENSIONS = frozenset({"extended_thinking", "routing"})
"""Top-level fields that are ours; no upstream sees them."""

_ROUTING_FIELDS = ("optimize", "task", "session", "policy", "tools", "read_only", "mcp_tools")
_SESSION_HEADERS = ("x-session-id", "x-claude-code-session-id", "session-id", "session_id")
_LONGEST_ID = 512
_MOST_TOOLS = 1_024

Name = TypeVar("Name", bound=str)


@dataclass(frozen=True, slots=True)
class Extensions:
    """What was said to the gateway, checked."""

    ask: RoutingAsk
    session: SessionId | None
    thinking: bool | None
    call_kind: StepKind | None
    idempotency_key: str | None
    trace: TraceParent | None
    """Where the request belongs in the trace of its sender."""


def read_extensions(body: JsonObject, headers: Mapping[str, str]) -> Extensions:
    """Read our fields and headers; `GatewayError` (400) names the one that is wrong.

    `headers` has lower-case names.
    """
    ask = _routing_ask(body)
    kind, traceparent = headers.get(CALL_KIND_HEADER), headers.get("traceparent")
    return Extensions(
        ask=ask,
        session=ask.session or _session_elsewhere(body, headers),
        thinking=flag(body, "extended_thinking", "extended_thinking"),
        call_kind=None if kind is None else _literal(kind, get_args(StepKind), CALL_KIND_HEADER),
        idempotency_key=headers.get("idempotency-key"),
        trace=None if traceparent is None else parse_traceparent(traceparent),
    )


def _routing_ask(body: JsonObject) -> RoutingAsk:
    routing = objects(body, "routing", "routing")
    if routing is None:
        return RoutingAsk()
    for name in routing:
        if name not in _ROUTING_FIELDS:
            shown = f"routing.{name[:LONGEST_NAME]}"
            raise invalid(
                f"`{shown}` is not known; `routing` takes {', '.join(_ROUTING_FIELDS)}.",
                shown,
                mend=near(name, _ROUTING_FIELDS),
            )
    optimize, task = routing.get("optimize"), routing.get("task")
    session = text(routing, "session", "routing.session", longest=_LONGEST_ID)
    return RoutingAsk(
        optimize=_optional(optimize, get_args(Objective), "routing.optimize"),
        task=_optional(task, get_args(TaskKind), "routing.task"),
        session=None if session is None else _session(session, "routing.session"),
        policy=text(routing, "policy", "routing.policy"),
        tools=_names(routing, "tools", "routing.tools"),
        read_only=flag(routing, "read_only", "routing.read_only") or False,
        mcp_tools=_mcp_tools(objects(routing, "mcp_tools", "routing.mcp_tools") or {}),
    )


def _mcp_tools(functions: JsonObject) -> dict[str, str]:
    if len(functions) > _MOST_TOOLS:
        raise invalid(f"`routing.mcp_tools` names more than {_MOST_TOOLS}.", "routing.mcp_tools")
    named: dict[str, str] = {}
    for function, tool in functions.items():
        path = f"routing.mcp_tools.{function[:LONGEST_NAME]}"
        written = tool if isinstance(tool, str) and len(tool) <= LONGEST_NAME else ""
        server, _, name = written.partition("/")
        # A function of another name could hide in the reports as what it is not.
        if not (server and name) or function_name(f"{MCP}{written}") != function:
            raise invalid(
                f"`{path}` must be `server/tool`, and the function `mcp__server__tool`.", path
            )
        named[function] = f"{MCP}{written}"
    return named


def _names(owner: JsonObject, name: str, path: str) -> tuple[str, ...] | None:
    listed = owner.get(name)
    if listed is None:
        return None
    if not isinstance(listed, list) or len(listed) > _MOST_TOOLS:
        raise invalid(f"`{path}` must be a list of at most {_MOST_TOOLS} names.", path)
    for place, value in enumerate(listed):
        if not isinstance(value, str) or not 0 < len(value) <= LONGEST_NAME:
            at = f"{path}[{place}]"
            raise invalid(f"`{at}` must be a string of 1 to {LONGEST_NAME} characters.", at)
    return tuple(str(value) for value in listed)


def _session_elsewhere(body: JsonObject, headers: Mapping[str, str]) -> SessionId | None:
    for name in _SESSION_HEADERS:
        if headers.get(name):
            return _session(headers[name], name)
    metadata = body.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("user_id"), str):
        return _session(metadata["user_id"], "metadata.user_id")
    cache_key = body.get("prompt_cache_key")
    if isinstance(cache_key, str):
        return _session(cache_key, "prompt_cache_key")
    return None


def _session(value: str, path: str) -> SessionId | None:
    if len(value) > _LONGEST_ID or not value.isprintable():
        raise invalid(
            f"`{path}` must be at most {_LONGEST_ID} printable characters to serve as session id.",
            path,
        )
    return SessionId(value) if value else None


def _optional(value: JsonValue, allowed: Sequence[Name], path: str) -> Name | None:
    return None if value is None else _literal(value, allowed, path)


def _literal(value: JsonValue, allowed: Sequence[Name], path: str) -> Name:
    found = one_of(value, allowed, path)
    return allowed[allowed.index(found)]
