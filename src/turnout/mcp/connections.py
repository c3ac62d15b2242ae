"""Every connection of a gateway, or of a run."""

import logging
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

from turnout.core.clock import Clock
from turnout.core.govern.connections import Connection, ConnectionTool, ToolOutcome
from turnout.core.json import JsonObject
from turnout.errors import ConnectionFailedError
from turnout.mcp.link import Link
from turnout.mcp.reach import Cage, from_here, inside

__all__ = ["McpConnections"]

_TALKATIVE: Final = ("mcp", "client", "httpx2", "httpcore2")
"""Loggers of the SDK; what they write may hold results and addresses."""


class McpConnections:
    """Connections to MCP servers, each opened at its first use; use it inside `async with`."""

    def __init__(
        self, connections: Mapping[str, Connection], clock: Clock, cage: Cage | None = None
    ) -> None:
        """`cage`: where the programs of connections run; None: here."""
        reach = from_here() if cage is None else inside(cage)
        self._connections = connections
        self._links = {name: Link(held, clock, reach) for name, held in connections.items()}

    async def __aenter__(self) -> Self:
        for name in _TALKATIVE:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def get(self, name: str) -> Connection | None:
        """Return a registered connection; None where there is none of that name."""
        return self._connections.get(name)

    async def tools(self, name: str) -> tuple[ConnectionTool, ...]:
        """Return a connection's tools, by name; `ConnectionFailedError` where it has none to give.

        A list is believed for a minute, or until the server says that it has changed.
        """
        return await self._link(name).tools()

    async def call(self, name: str, tool: str, arguments: JsonObject) -> ToolOutcome:
        """Run a tool; `ToolError` where its server refuses, `ConnectionFailedError` otherwise.

        A call that the server may have acted on is never sent twice.
        """
        return await self._link(name).call(tool, arguments)

    async def close(self) -> None:
        """Close every connection, and end the programs that were started for them."""
        for link in self._links.values():
            await link.close()

    def _link(self, name: str) -> Link:
        held = self._connections[name]
        if held.unset:
            raise ConnectionFailedError(
                f"The connection {name}: the variable {held.unset} is not set.",
                mend="Set it where the gateway runs.",
            )
        return self._links[name]
