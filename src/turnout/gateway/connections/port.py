"""What this room needs from outside."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from turnout.core.govern.connections import Connection, ConnectionTool, ToolOutcome
from turnout.core.ids import ToolCallId
from turnout.core.json import JsonObject
from turnout.errors import ConnectionFailedError

__all__ = ["KeptTurns", "NoConnections", "ToolConnections"]


class ToolConnections(Protocol):
    """The connections that an operator has registered."""

    def get(self, name: str) -> Connection | None:
        """Return a registered connection; None where there is none of that name."""
        ...

    async def tools(self, name: str) -> tuple[ConnectionTool, ...]:
        """Return a connection's tools, by name; `ConnectionFailedError` where it has none to give.

        In bounded time, and as fit to be shown to a model.
        """
        ...

    async def call(self, name: str, tool: str, arguments: JsonObject) -> ToolOutcome:
        """Run a tool, in bounded time; never twice.

        `ToolError` where its server refuses, `ConnectionFailedError` where it is not there.
        """
        ...


class KeptTurns(Protocol):
    """What happened between the gateway and a model before an answer that the client saw."""

    async def keep(self, scope: str, call: ToolCallId, text: str) -> None:
        """Keep it, durably, under the first call that the client is to answer."""
        ...

    async def get(self, scope: str, calls: Sequence[ToolCallId]) -> Mapping[ToolCallId, str]:
        """Return what is kept under any of these calls."""
        ...


class NoConnections:
    """The `ToolConnections` of a gateway that has none."""

    def get(self, name: str) -> Connection | None:
        """Return None."""
        return _NONE.get(name)

    async def tools(self, name: str) -> tuple[ConnectionTool, ...]:
        """Refuse."""
        raise ConnectionFailedError(f"The connection {name} is not registered.")

    async def call(self, name: str, tool: str, arguments: JsonObject) -> ToolOutcome:
        """Refuse."""
        raise ConnectionFailedError(
            f"The connection {name} with {tool}({', '.join(arguments)}) is not registered."
        )


_NONE: Mapping[str, Connection] = MappingProxyType({})
