"""The MCP servers whose tools the gateway runs."""

import asyncio
import importlib
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from turnout.core.clock import Clock, SystemClock
from turnout.core.govern.connections import ConnectionTool
from turnout.errors import ConfigError, ConnectionFailedError, MissingExtraError
from turnout.gateway.config.tables import close_match
from turnout.gateway.connections.port import NoConnections, ToolConnections
from turnout.settings import Settings

__all__ = ["CheckedConnection", "check_connections", "open_connections"]


@dataclass(frozen=True, slots=True)
class CheckedConnection:
    """Whether a connection can be used, and what for."""

    name: str
    tools: tuple[ConnectionTool, ...] = ()
    error: str = ""
    """Empty where its server answered."""
    mend: str = ""


async def check_connections(
    settings: Settings, names: Sequence[str] = ()
) -> Sequence[CheckedConnection]:
    """Ask the servers of some connections, or of all, for their tools; no tool is run.

    `ConfigError` for a name that is not configured.
    """
    known = list(settings.connections)
    for name in names:
        if name not in known:
            raise ConfigError(
                f"There is no connection {name!r}.",
                mend=close_match(name, known) or "Write a table `[connections.NAME]`.",
            )
    async with AsyncExitStack() as stack:
        connections = await open_connections(settings, SystemClock(), stack)
        return await asyncio.gather(*(_check(connections, name) for name in names or known))


async def _check(connections: ToolConnections, name: str) -> CheckedConnection:
    try:
        return CheckedConnection(name, await connections.tools(name))
    except ConnectionFailedError as error:
        return CheckedConnection(name, error=error.message, mend=error.mend)


async def open_connections(
    settings: Settings, clock: Clock, stack: AsyncExitStack
) -> ToolConnections:
    """Open what is configured; each connects at its first use.

    `MissingExtraError` where connections are configured and the package is not installed.
    """
    if not settings.connections:
        return NoConnections()
    try:
        module = importlib.import_module("turnout.mcp.connections")
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"The connections of turnout.toml need the package {error.name}.",
            mend="Run `pip install 'turnout[mcp]'`, or remove the tables `[connections.NAME]`.",
        ) from error
    opened: ToolConnections = await stack.enter_async_context(
        module.McpConnections(settings.connections, clock)
    )
    return opened
