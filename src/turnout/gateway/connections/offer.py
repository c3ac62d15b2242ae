"""The tools of connections as functions that a model can be shown."""

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final, NamedTuple

from turnout.core.govern.connections import ConnectionTool
from turnout.core.policies import ToolRule
from turnout.errors import ConnectionFailedError, GatewayError
from turnout.gateway.connections.port import ToolConnections
from turnout.gateway.dialog.conversation import ToolSpec
from turnout.gateway.exchange import ConnectionAsk, DeclaredTool, InferenceRequest
from turnout.gateway.tool_rules import judge_request

__all__ = ["Offer", "Place", "function_name", "make_offer"]

_LONGEST_NAME: Final = 64
_MOST_TOOLS: Final = 128
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_-]")


class Place(NamedTuple):
    """Where a tool is."""

    connection: str
    tool: str

    @property
    def full_name(self) -> str:
        """As policies and receipts name it."""
        return f"mcp:{self.connection}/{self.tool}"


@dataclass(frozen=True, slots=True)
class Offer:
    """What a request's connections give to the model."""

    functions: Mapping[str, tuple[ToolSpec, ...]] = field(default_factory=dict)
    """By connection, each under a name that no other tool of the request has."""
    places: Mapping[str, Place] = field(default_factory=dict)
    """By the name of the function."""
    reads: frozenset[str] = frozenset()
    """Names of the functions that change nothing, as their servers say."""
    outside: tuple[str, ...] = ()
    """Full names of those that the policy's list lacks, and lets pass."""

    def name_of(self, place: Place) -> str:
        """Return the function that stands, or would stand, for a tool."""
        for name, known in self.places.items():
            if known == place:
                return name
        return function_name(place, ())


async def make_offer(
    request: InferenceRequest, rule: ToolRule, connections: ToolConnections
) -> Offer:
    """Return what the model may be shown: what the server has, the request wants, the rule allows.

    `GatewayError`: 400 where a connection is not registered, offers too much or lacks a tool that
    is asked for by name, 502 where its server does not answer.
    """
    asks = _merged(request.connections)
    for ask in asks:
        _check(ask, connections)
    listed = await asyncio.gather(*(_listed(ask, connections) for ask in asks))
    taken = {tool.name for tool in request.tools}
    functions: dict[str, tuple[ToolSpec, ...]] = {}
    places: dict[str, Place] = {}
    outside: list[str] = []
    reads: set[str] = set()
    for ask, tools in zip(asks, listed, strict=True):
        specs = []
        for tool in tools:
            place = Place(ask.name, tool.name)
            judged = judge_request(rule, _declaring(request, place))
            if judged.refused is not None:
                continue
            outside += judged.outside
            name = function_name(place, {*taken, *places})
            places[name] = place
            if tool.read_only:
                reads.add(name)
            specs.append(ToolSpec(name, tool.description, tool.parameters, strict=False))
        functions[ask.name] = tuple(specs)
    if len(places) > _MOST_TOOLS:
        raise GatewayError(
            f"The connections of the request offer {len(places)} tools, more than {_MOST_TOOLS}.",
            status=400,
            code="too_many_tools",
            mend="Name those that are wanted in `allowed_tools`.",
            param="tools",
        )
    return Offer(functions, places, frozenset(reads), tuple(outside))


def function_name(place: Place, taken: Collection[str]) -> str:
    """Return a name that every API takes and that is not taken; the same for the same tool."""
    plain = _UNFIT.sub("_", f"mcp__{place.connection}__{place.tool}")
    if len(plain) <= _LONGEST_NAME and plain not in taken:
        return plain
    digest = sha256(place.full_name.encode()).hexdigest()
    for size in range(8, len(digest)):
        name = f"{plain[: _LONGEST_NAME - size - 1]}_{digest[:size]}"
        if name not in taken:
            return name
    raise GatewayError("The names of the tools cannot be told apart.", status=400, code="bad_tools")


def _merged(asks: Sequence[ConnectionAsk]) -> list[ConnectionAsk]:
    """Return one ask for each connection, with the tools that all of its asks want."""
    merged: dict[str, ConnectionAsk] = {}
    for ask in asks:
        known = merged.get(ask.name)
        if known is None:
            merged[ask.name] = ask
            continue
        tools = known.tools if ask.tools is None else ask.tools
        if known.tools is not None and ask.tools is not None:
            tools = tuple(tool for tool in known.tools if tool in ask.tools)
        merged[ask.name] = ConnectionAsk(ask.name, tools, known.url or ask.url)
    return list(merged.values())


def _check(ask: ConnectionAsk, connections: ToolConnections) -> None:
    held = connections.get(ask.name)
    if held is None:
        raise GatewayError(
            f"There is no connection `{ask.name}` here.",
            status=400,
            code="unknown_connection",
            mend="Name one that the gateway's operator has registered; a server that the client "
            "brings is not called.",
            param="tools",
        )
    if ask.url is not None and ask.url.rstrip("/") != held.url.rstrip("/"):
        raise GatewayError(
            f"The connection `{ask.name}` is registered with another address.",
            status=400,
            code="unknown_connection",
            mend="Leave the address out: the gateway knows it.",
            param="tools",
        )


async def _listed(ask: ConnectionAsk, connections: ToolConnections) -> Sequence[ConnectionTool]:
    try:
        tools = await connections.tools(ask.name)
    except ConnectionFailedError as error:
        raise GatewayError(
            error.message, status=502, code="connection_failed", mend=error.mend
        ) from error
    if ask.tools is None:
        return tools
    if lacking := sorted(set(ask.tools) - {tool.name for tool in tools}):
        raise GatewayError(
            f"The connection `{ask.name}` has no tool `{lacking[0]}`, or does not allow it.",
            status=400,
            code="unknown_tool",
            mend="`turnout connections check` lists those that can be used.",
            param="tools",
        )
    return [tool for tool in tools if tool.name in ask.tools]


def _declaring(request: InferenceRequest, place: Place) -> InferenceRequest:
    return replace(request, tools=(DeclaredTool(place.full_name),))
