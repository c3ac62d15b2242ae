"""OpenAI's chat completions."""

from turnout.gateway.wire.chat.shape import ChatShape

__all__ = ["ChatShape"]
