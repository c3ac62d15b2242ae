"""MCP servers: those that the gateway calls, and those that run inside the sandbox of a run."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from turnout.core.json import JsonObject

__all__ = ["Connection", "ConnectionTool", "ToolOutcome"]


@dataclass(frozen=True, slots=True)
class Connection:
    """An MCP server, reached by an address or started by a command; exactly one of the two."""

    name: str
    url: str = ""
    """Streamable HTTP endpoint."""
    command: tuple[str, ...] = ()
    """Program and arguments; it speaks over its standard input and output."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent with every request to `url`; may hold secrets."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """All that the program sees of the environment; may hold secrets."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """What must not leave the gateway, wherever the server says it."""
    allow: tuple[str, ...] = ()
    """Tools that may be used; empty: all."""
    read_only: bool = False
    """Whether only tools are used which the server marks as changing nothing."""
    timeout: float = 30.0
    """Seconds that one call, or the listing of the tools, may take."""
    longest_result: int = 60_000
    """Characters of a result that the model reads."""
    unset: str = ""
    """Variable that should hold a credential and is not set: nothing is asked of this server."""


@dataclass(frozen=True, slots=True)
class ConnectionTool:
    """A tool as its server describes it, made fit to be shown to a model."""

    name: str
    description: str
    parameters: JsonObject
    """JSON Schema of the arguments object."""
    read_only: bool = False
    """Whether the server says that it changes nothing."""


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What came of a call."""

    text: str
    is_error: bool = False
