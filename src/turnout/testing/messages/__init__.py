"""A scripted server of Anthropic's messages API."""

from turnout.testing.messages.server import ScriptedMessagesServer
from turnout.testing.messages.turns import (
    MessagesFault,
    MessagesRefusal,
    MessagesTurn,
    text,
    thinking,
    tool_use,
)

__all__ = [
    "MessagesFault",
    "MessagesRefusal",
    "MessagesTurn",
    "ScriptedMessagesServer",
    "text",
    "thinking",
    "tool_use",
]
