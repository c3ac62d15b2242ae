"""Every API shape that is spoken, to clients and to providers."""

from collections.abc import Mapping
from typing import Final

from turnout.gateway.dialog.conversation import Shape
from turnout.gateway.wire.base import ClientShape, UpstreamShape
from turnout.gateway.wire.chat import ChatShape
from turnout.gateway.wire.messages import MessagesShape
from turnout.gateway.wire.responses import ResponsesShape

__all__ = ["CHAT", "HEARD", "MESSAGES", "RESPONSES", "SPOKEN"]

CHAT: Final = ChatShape()
MESSAGES: Final = MessagesShape()
RESPONSES: Final = ResponsesShape()

HEARD: Final[Mapping[Shape, ClientShape]] = {
    shape.shape: shape for shape in (CHAT, MESSAGES, RESPONSES)
}
"""As clients speak them."""

SPOKEN: Final[Mapping[Shape, UpstreamShape]] = {
    shape.shape: shape for shape in (CHAT, MESSAGES, RESPONSES)
}
"""As providers speak them."""
