"""What a tool of the agent is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from turnout.agent.base import AgentConfig, Brief
from turnout.agent.tools.bounds import Bounds, bounds_of
from turnout.core.json import JsonObject
from turnout.core.tools import Tool
from turnout.sandbox.base import Sandbox

__all__ = ["AgentTool", "Arguments", "Parameter", "ToolContext", "ToolOutput", "tool"]


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool works with."""

    sandbox: Sandbox
    brief: Brief
    config: AgentConfig
    output: Callable[[str], str | None] = lambda _name: None
    """Finds the whole output behind a result that was cut."""
    window: Callable[[], int | None] = lambda: None
    """Finds how many tokens the model at work takes; None: not known."""

    @property
    def bounds(self) -> Bounds:
        """What one call may take and say."""
        before = self.brief.tests_before
        return bounds_of(
            self.brief.surface,
            self.config,
            window=self.window(),
            tests_took=before.seconds if before else 0.0,
        )


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments that satisfy the tool's declaration."""

    values: JsonObject

    def text(self, name: str) -> str:
        """Return a string argument; empty where it was left out."""
        value = self.values.get(name, "")
        return value if isinstance(value, str) else str(value)

    def number(self, name: str, default: int) -> int:
        """Return an integer argument."""
        value = self.values.get(name, default)
        return value if isinstance(value, int) else default


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool has to say to the model."""

    text: str
    is_error: bool = False
    """True where the tool could not do what was asked."""
    log: bool = False
    """True for what a program printed: it may be summarised."""
    page: bool = False
    """True for a page of a file: `read_cap` holds for it."""
    ends_run: bool = False
    unsure: bool = False
    """True for an error that leaves open whether something was changed."""


class AgentTool(Protocol):
    """A tool that models may call. One that fails raises `ToolError`, whose text they read."""

    @property
    def spec(self) -> Tool:
        """The declaration that models see."""
        ...

    @property
    def writes(self) -> bool:
        """Whether a call may change the workspace; calls that do not may run at the same time."""
        ...

    async def call(self, arguments: Arguments, context: ToolContext, /) -> ToolOutput:
        """Carry out one call."""
        ...


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a tool, as its declaration shows it."""

    name: str
    description: str
    kind: Literal["string", "integer"] = "string"
    required: bool = True


def tool(name: str, description: str, *parameters: Parameter) -> Tool:
    """Declare a tool."""
    properties: JsonObject = {
        p.name: {"type": p.kind, "description": p.description} for p in parameters
    }
    required = [p.name for p in parameters if p.required]
    schema: JsonObject = {"type": "object", "properties": properties, "required": required}
    return Tool(name, description, schema)
