"""Tools, the calls a model asks for, and what came back."""

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, NamedTuple

from turnout.core.ids import DeploymentId, ModelId, ToolCallId
from turnout.core.json import JsonObject

__all__ = ["MCP", "Holder", "Tool", "ToolCall", "ToolResult", "function_name"]

MCP: Final = "mcp:"
"""Begins the name of a tool of an MCP server, `mcp:server/tool`."""

_LONGEST_FUNCTION: Final = 64
_UNFIT: Final = re.compile("[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may ask for."""

    name: str
    description: str
    parameters: JsonObject
    """JSON Schema of the arguments object."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's request to run a tool; asking is not executing."""

    id: ToolCallId
    name: str
    arguments: str
    """As the model wrote them: meant to be a JSON object, possibly broken."""


class Holder(NamedTuple):
    """Who made a tool call."""

    model: ModelId
    deployment: DeploymentId


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What the model reads as the answer to one call."""

    call_id: ToolCallId
    content: str
    is_error: bool = False
    """True where the call was not carried out or the tool failed."""
    elided_chars: int = 0
    """Characters left out of `content` by the output cap."""
    ends_run: bool = False
    """True for a tool such as `finish`: the model has said that it is done."""
    full: str = ""
    """The whole output where `content` is not all of it; a bounded part of a very long one."""
    unsure: bool = False
    """True for an error that leaves open whether the call has changed something."""


def function_name(tool: str) -> str:
    """Return the name by which models know a tool; for `mcp:server/tool` one that every API takes.

    Where characters have to be replaced or left out, a digest tells such names apart.
    """
    if not tool.startswith(MCP):
        return tool
    server, _, name = tool.removeprefix(MCP).partition("/")
    written = f"mcp__{server}__{name}"
    plain = _UNFIT.sub("_", written)
    if plain == written and len(plain) <= _LONGEST_FUNCTION:
        return plain
    digest = sha256(tool.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{plain[: _LONGEST_FUNCTION - 9]}_{digest}"
