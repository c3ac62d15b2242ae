"""The MCP servers of a run, each a program inside its sandbox."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final

from turnout.agent.tools.base import AgentTool
from turnout.agent.tools.mcp_tool import McpTool, ToolServers
from turnout.agent.tools.output import printed
from turnout.core.events import Notice
from turnout.core.govern.connections import Connection, ConnectionTool
from turnout.core.tools import function_name
from turnout.errors import ConnectionFailedError, SandboxError
from turnout.sandbox.base import Command, Exit, Output, Sandbox

__all__ = ["OpenServers", "SandboxCage", "Served", "served_tools"]

OpenServers = Callable[[Sandbox], AbstractAsyncContextManager[ToolServers]]
"""Opens the servers of a run in its sandbox; each starts at its first use."""

_MOST_TOOLS: Final = 128
_MOST_CHARS: Final = 24_000
"""Characters of all declarations together: each request carries them."""
_LONGEST_LIFE: Final = 86_400.0
_KEPT_ERRORS: Final = 2_000
_SHOWN_ERRORS: Final = 400
_NO_MODULE: Final = "No module named"


class SandboxCage:
    """Runs the programs of servers as commands of a sandbox."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    async def speak(
        self, connection: Connection, heard: AsyncIterator[bytes]
    ) -> AsyncGenerator[bytes, None]:
        """Run a server's program on what it is to hear, yielding what it says, in any pieces.

        `ConnectionFailedError` says how it ended, as the end of a sentence about it.
        """
        command = Command(
            connection.command,
            env=connection.environment,
            stdin=heard,
            timeout=_LONGEST_LIFE,
            head=_KEPT_ERRORS,
            tail=_KEPT_ERRORS,
            raw=True,
        )
        items = self._sandbox.exec(command)
        errors = b""
        try:
            async for item in items:
                if isinstance(item, Exit):
                    raise ConnectionFailedError(_ended(item, errors))
                if item.stream == "stdout":
                    yield item.data
                else:
                    errors = _kept(errors, item)
        except SandboxError as error:
            raise ConnectionFailedError(f"is gone: {error.message.rstrip('.')}") from error
        finally:
            if isinstance(items, AsyncGenerator):
                await items.aclose()


@dataclass(frozen=True, slots=True)
class Served:
    """What the servers of a run offer to its model."""

    tools: tuple[AgentTool, ...] = ()
    notices: tuple[Notice, ...] = ()
    """What is missing, for people."""


async def served_tools(servers: ToolServers, wanted: Sequence[Connection]) -> Served:
    """List the tools of servers, as many as may be shown; one that has none is left out."""
    listed = await asyncio.gather(*(_listed(servers, connection.name) for connection in wanted))
    tools: dict[str, AgentTool] = {}
    notices: list[str] = []
    room = _MOST_CHARS
    for connection, found in zip(wanted, listed, strict=True):
        if isinstance(found, ConnectionFailedError):
            notices.append(f"{found} The run goes on without its tools.")
            continue
        left_out = 0
        for each in found:
            tool = McpTool.of(servers, connection.name, each)
            size = len(json.dumps([tool.spec.description, tool.spec.parameters]))
            name = function_name(tool.spec.name)
            if size > room or len(tools) == _MOST_TOOLS or name in tools:
                left_out += 1
                continue
            tools[name] = tool
            room -= size
        notices += _lacking(connection, found, left_out)
    return Served(tuple(tools.values()), tuple(Notice(text, "warning") for text in notices))


async def _listed(
    servers: ToolServers, name: str
) -> tuple[ConnectionTool, ...] | ConnectionFailedError:
    try:
        return await servers.tools(name)
    except ConnectionFailedError as error:
        return error


def _lacking(
    connection: Connection, found: Sequence[ConnectionTool], left_out: int
) -> Sequence[str]:
    server = f"The MCP server {connection.name}"
    missing = [name for name in connection.allow if name not in {tool.name for tool in found}]
    said = [f"{server} has no tool {', '.join(missing)} that could be shown."] if missing else []
    if left_out:
        said.append(
            f"{server}: {left_out} of its tools are left out, as there are too many or their "
            "declarations are too long. Name those that are wanted in `allow`."
        )
    return said


def _kept(errors: bytes, item: Output) -> bytes:
    return (errors + item.data)[-_KEPT_ERRORS:]


def _ended(end: Exit, errors: bytes) -> str:
    how = f"ended with status {end.code}" if end.reason == "exited" else f"ended: {end.reason}"
    if end.reason == "not_started":
        how = f"could not be started: {end.error}"
    said = " ".join(printed(errors).split())[-_SHOWN_ERRORS:]
    if _NO_MODULE in said:
        said += ". Name its packages under `[tests] requirements`, with all that the tests need"
    return f"its program {how}, saying: {said}" if said else f"its program {how}"
