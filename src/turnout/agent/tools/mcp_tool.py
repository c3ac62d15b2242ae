"""Tools of MCP servers that run inside the sandbox."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from turnout.agent.tools.base import Arguments, ToolContext, ToolOutput
from turnout.agent.tools.marks import broken
from turnout.core.govern.connections import ConnectionTool, ToolOutcome
from turnout.core.json import JsonObject, JsonValue, as_object
from turnout.core.tools import MCP, Tool
from turnout.errors import ConnectionFailedError, ToolError
from turnout.sandbox.base import Command, Sandbox

__all__ = ["GoneTool", "McpTool", "ToolServers"]

_WORDS: Final = ("description", "title")
_LOOK_SECONDS: Final = 10.0


class ToolServers(Protocol):
    """The MCP servers of one run."""

    async def tools(self, name: str) -> tuple[ConnectionTool, ...]:
        """Return a server's tools, fit to be shown to a model; `ConnectionFailedError` without."""
        ...

    async def call(self, name: str, tool: str, arguments: JsonObject) -> ToolOutcome:
        """Run a tool, in bounded time; never twice.

        `ToolError` where its server refuses, `ConnectionFailedError` where it is not there.
        """
        ...


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool as its server has listed it; it counts as one that writes."""

    servers: ToolServers
    server: str
    name: str
    """As the server calls it."""
    spec: Tool

    @classmethod
    def of(cls, servers: ToolServers, server: str, listed: ConnectionTool) -> "McpTool":
        """Return a tool that a server has listed."""
        parameters = as_object(_said(listed.parameters))
        name = f"{MCP}{server}/{listed.name}"
        return cls(servers, server, listed.name, Tool(name, broken(listed.description), parameters))

    @property
    def writes(self) -> bool:
        """Return True: nobody vouches for a server that says otherwise."""
        return True

    async def call(self, arguments: Arguments, context: ToolContext) -> ToolOutput:
        """Call the server; what it says of an error leaves open what was done."""
        # What waited for a person is frozen, and the server with it.
        await context.sandbox.resume()
        try:
            outcome = await self.servers.call(self.server, self.name, arguments.values)
        except ToolError as error:
            return ToolOutput(str(error), is_error=True, unsure=True)
        except ConnectionFailedError as error:
            await _look_at(context.sandbox)
            return ToolOutput(error.message, is_error=True, unsure=True)
        text = outcome.text or "It returned nothing."
        return ToolOutput(text, outcome.is_error, log=True, unsure=outcome.is_error)


@dataclass(frozen=True, slots=True)
class GoneTool:
    """Stands for a tool on record whose server is not there any more, or does not list it."""

    name: str

    @property
    def spec(self) -> Tool:
        """A declaration that no model sees."""
        return Tool(self.name, "", {"type": "object"})

    @property
    def writes(self) -> bool:
        """Return True: what it did on record may have changed something."""
        return True

    async def call(self, _arguments: Arguments, _context: ToolContext) -> ToolOutput:
        """Refuse."""
        raise ToolError(f"The tool `{self.name}` is not there any more.")


async def _look_at(sandbox: Sandbox) -> None:
    """Raise `SandboxError` where it is not a server that is gone but all of its surroundings."""
    await sandbox.run(Command(("true",), timeout=_LOOK_SECONDS))


def _said(schema: JsonValue) -> JsonValue:
    """Return a schema whose words cannot speak as anybody else; what it admits stays the same."""
    if isinstance(schema, Mapping):
        return {
            name: broken(part) if name in _WORDS and isinstance(part, str) else _said(part)
            for name, part in schema.items()
        }
    if isinstance(schema, Sequence) and not isinstance(schema, str):
        return [_said(part) for part in schema]
    return schema
