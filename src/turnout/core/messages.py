"""The messages of a conversation with a model."""

from dataclasses import dataclass
from typing import Literal

from turnout.core.ids import ToolCallId
from turnout.core.tools import ToolCall

__all__ = ["AssistantMessage", "Message", "SystemMessage", "ToolMessage", "UserMessage"]


@dataclass(frozen=True, slots=True)
class SystemMessage:
    """Standing instructions."""

    content: str
    role: Literal["system"] = "system"


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What the user, or the loop in the user's place, says."""

    content: str
    role: Literal["user"] = "user"


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """What a model said."""

    content: str
    """Text; empty where the model only called tools."""
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    wire: str = ""
    """The message as it came, one JSON object; sent back as it is so that no field is lost."""
    role: Literal["assistant"] = "assistant"


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """The result of one tool call."""

    tool_call_id: ToolCallId
    content: str
    role: Literal["tool"] = "tool"


Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage
