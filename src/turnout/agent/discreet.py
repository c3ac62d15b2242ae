"""Model calls that carry no secret of this process, wherever it came from."""

from dataclasses import replace

from turnout.agent.base import ModelClient
from turnout.core.inference import ModelReply, ModelRequest
from turnout.core.messages import AssistantMessage, Message
from turnout.core.secrecy.redactor import Redactor
from turnout.core.tools import ToolCall

__all__ = ["DiscreetClient"]


class DiscreetClient:
    """Takes secrets out of what models are told, as they are taken out of the record.

    So a run that goes on from its record sends what it would have sent.
    """

    def __init__(self, client: ModelClient, redactor: Redactor) -> None:
        self._client = client
        self._redactor = redactor

    async def call(self, request: ModelRequest) -> ModelReply:
        """Make one model call; errors are those of the client beneath."""
        return await self._client.call(
            replace(request, messages=tuple(map(self._told, request.messages)))
        )

    def _told(self, message: Message) -> Message:
        text = self._redactor.text
        if not isinstance(message, AssistantMessage):
            told = text(message.content)
            return message if told is message.content else replace(message, content=told)
        calls = tuple(
            ToolCall(call.id, call.name, text(call.arguments)) for call in message.tool_calls
        )
        return replace(
            message,
            content=text(message.content),
            tool_calls=calls,
            reasoning=text(message.reasoning),
            wire=text(message.wire),
        )
