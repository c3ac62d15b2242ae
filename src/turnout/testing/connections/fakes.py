"""Connections without a server, for tests of what is done with them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from turnout.core.govern.connections import Connection, ConnectionTool, ToolOutcome
from turnout.core.ids import ToolCallId
from turnout.core.json import JsonObject
from turnout.errors import ConnectionFailedError

__all__ = ["FakeConnections", "MemoryTurns", "fake_tool"]

Work = Callable[[JsonObject], ToolOutcome]


def fake_tool(name: str, *, read_only: bool = False) -> ConnectionTool:
    """Return a tool that takes any object."""
    return ConnectionTool(name, f"The tool {name}.", {"type": "object"}, read_only)


@dataclass(slots=True)
class FakeConnections:
    """Connections whose tools are functions; one without tools is not reachable."""

    offered: Mapping[str, Mapping[str, Work]] = field(default_factory=dict)
    """By connection and tool."""
    calls: list[tuple[str, str, JsonObject]] = field(default_factory=list)
    read_only: frozenset[str] = frozenset()

    def get(self, name: str) -> Connection | None:
        """Return a connection at an address that nobody serves."""
        if name not in self.offered:
            return None
        return Connection(name, url=f"http://{name}.example.org/mcp")

    async def tools(self, name: str) -> tuple[ConnectionTool, ...]:
        """Return what is offered."""
        if not self.offered.get(name):
            raise ConnectionFailedError(f"The connection {name}: cannot be reached.")
        return tuple(
            fake_tool(tool, read_only=tool in self.read_only) for tool in self.offered[name]
        )

    async def call(self, name: str, tool: str, arguments: JsonObject) -> ToolOutcome:
        """Run the function."""
        self.calls.append((name, tool, arguments))
        return self.offered[name][tool](arguments)


@dataclass(slots=True)
class MemoryTurns:
    """`KeptTurns` of one process."""

    texts: dict[tuple[str, ToolCallId], str] = field(default_factory=dict)

    async def keep(self, scope: str, call: ToolCallId, text: str) -> None:
        """Keep a text, in place of an earlier one."""
        self.texts[scope, call] = text

    async def get(self, scope: str, calls: Sequence[ToolCallId]) -> Mapping[ToolCallId, str]:
        """Return what is kept under any of these calls."""
        return {call: self.texts[scope, call] for call in calls if (scope, call) in self.texts}
