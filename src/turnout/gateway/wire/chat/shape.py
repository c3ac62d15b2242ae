"""The chat completions API, as clients and as upstreams speak it."""

from collections.abc import Mapping

from turnout.core.ids import RequestId
from turnout.core.json import JsonObject, as_objects
from turnout.errors import TurnoutError
from turnout.gateway.catalog import Deployment
from turnout.gateway.dialog.conversation import Conversation, Shape
from turnout.gateway.exchange import Completion, InferenceRequest, ServerEvent, UpstreamError
from turnout.gateway.repair import needs_whole_reply, prepare_body
from turnout.gateway.wire.base import ErrorReply, ReadReply
from turnout.gateway.wire.chat.answer import write_completion
from turnout.gateway.wire.chat.body import write_body
from turnout.gateway.wire.chat.conversation import read_conversation
from turnout.gateway.wire.chat.errors import write_error
from turnout.gateway.wire.chat.reader import ChatReader
from turnout.gateway.wire.chat.reply import read_reply
from turnout.gateway.wire.chat.request import parse_request
from turnout.gateway.wire.chat.writer import ChatWriter

__all__ = ["ChatShape"]


class ChatShape:
    """Both sides of chat completions."""

    @property
    def shape(self) -> Shape:
        """Its name."""
        return "chat"

    @property
    def path(self) -> str:
        """Where requests go, below the provider's base URL."""
        return "/chat/completions"

    def parse(self, raw: bytes, headers: Mapping[str, str]) -> InferenceRequest:
        """Parse a request; `GatewayError` (400) names the field that is wrong."""
        return parse_request(raw, headers)

    def conversation(self, request: InferenceRequest) -> Conversation:
        """Return all that a request says; `GatewayError` (400) where no other shape can say it."""
        return read_conversation(request)

    def write(self, completion: Completion, request: InferenceRequest, id_: RequestId) -> bytes:
        """Return the body of an answer that is not streamed."""
        return write_completion(completion, request, id_)

    def writer(self, request: InferenceRequest, id_: RequestId) -> ChatWriter:
        """Return what writes a streamed answer."""
        return ChatWriter(request, id_)

    def error(self, error: TurnoutError | UpstreamError) -> ErrorReply:
        """Return what the client reads of an error."""
        return write_error(error)

    def prepare(
        self, request: InferenceRequest, deployment: Deployment, said: Conversation | None
    ) -> JsonObject:
        """Return the body for a deployment, its quirks seen to."""
        if said is None:
            return prepare_body(request.body, request, deployment)
        return prepare_body(write_body(said, request, deployment), request, deployment)

    def needs_whole(self, request: InferenceRequest, deployment: Deployment) -> bool:
        """Return whether a streamed request has to be asked whole, to be repaired."""
        return needs_whole_reply(request, deployment)

    def is_end(self, event: ServerEvent) -> bool:
        """Return whether a choice has its finish reason with this event."""
        return any(c.get("finish_reason") for c in as_objects(event.data.get("choices")))

    def read(
        self, body: JsonObject, request: InferenceRequest, deployment: Deployment
    ) -> ReadReply:
        """Return a whole answer; `UpstreamError` where it is none."""
        return read_reply(body, request, deployment)

    def reader(self, request: InferenceRequest, deployment: Deployment) -> ChatReader:
        """Return what understands a streamed answer."""
        return ChatReader(deployment, legacy=bool(request.body.get("functions")))
