"""The MCP servers whose tools the gateway runs, and those that run inside a sandbox."""

import asyncio
import importlib
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from typing import Any

from turnout.agent.base import AgentConfig
from turnout.agent.servers import OpenServers, SandboxCage
from turnout.agent.tools.mcp_tool import ToolServers
from turnout.core.clock import Clock, SystemClock
from turnout.core.govern.connections import ConnectionTool
from turnout.errors import ConfigError, ConnectionFailedError, MissingExtraError
from turnout.gateway.config.tables import close_match
from turnout.gateway.connections.port import NoConnections, ToolConnections
from turnout.sandbox.base import Sandbox
from turnout.settings import Settings

__all__ = ["CheckedConnection", "check_connections", "open_connections", "open_servers"]


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
    module = _module("The connections of turnout.toml", "remove the tables `[connections.NAME]`")
    opened: ToolConnections = await stack.enter_async_context(
        module.McpConnections(settings.connections, clock)
    )
    return opened


def open_servers(config: AgentConfig, clock: Clock) -> OpenServers | None:
    """Return what opens the MCP servers of a run in its sandbox; None where there are none.

    `MissingExtraError` where some are configured and the package is not installed.
    """
    if not config.mcp:
        return None
    module = _module("The MCP servers of turnout.toml", "remove the tables `[[agent.mcp]]`")
    servers = {server.name: server for server in config.mcp}

    def opened(sandbox: Sandbox) -> AbstractAsyncContextManager[ToolServers]:
        connections: AbstractAsyncContextManager[ToolServers] = module.McpConnections(
            servers, clock, SandboxCage(sandbox)
        )
        return connections

    return opened


def _module(what: str, otherwise: str) -> Any:
    try:
        return importlib.import_module("turnout.mcp.connections")
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{what} need the package {error.name}.",
            mend=f"Run `pip install 'turnout[mcp]'`, or {otherwise}.",
        ) from error
