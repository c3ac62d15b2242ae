"""Tools, the calls a model asks for, and what came back."""

from dataclasses import dataclass
from typing import NamedTuple

from turnout.core.ids import DeploymentId, ModelId, ToolCallId
from turnout.core.json import JsonObject

__all__ = ["Holder", "Tool", "ToolCall", "ToolResult"]


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
