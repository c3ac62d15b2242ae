"""Anthropic's messages API, as clients speak it and as upstreams do."""

from collections.abc import Mapping

from turnout.core.ids import RequestId
from turnout.core.json import JsonObject, as_object, as_objects, as_text
from turnout.errors import TurnoutError
from turnout.gateway.catalog import Deployment
from turnout.gateway.dialog.conversation import Conversation, Shape
from turnout.gateway.exchange import Completion, InferenceRequest, ServerEvent, UpstreamError
from turnout.gateway.wire.base import ErrorReply, ReadReply, StreamReader, StreamWriter
from turnout.gateway.wire.messages.errors import write_error
from turnout.gateway.wire.messages.reader import MessagesReader
from turnout.gateway.wire.messages.reading import read_conversation
from turnout.gateway.wire.messages.reply import read_message, write_message
from turnout.gateway.wire.messages.request import parse_messages_request
from turnout.gateway.wire.messages.upstream import count_body, prepare_body
from turnout.gateway.wire.messages.writer import MessagesWriter

__all__ = ["MessagesShape"]


class MessagesShape:
    """A `ClientShape` and an `UpstreamShape`."""

    @property
    def shape(self) -> Shape:
        """Its name."""
        return "messages"

    @property
    def path(self) -> str:
        """Where requests go, below the provider's base URL."""
        return "/messages"

    @property
    def count_path(self) -> str:
        """Where the tokens of a request are counted."""
        return "/messages/count_tokens"

    def parse(self, raw: bytes, headers: Mapping[str, str]) -> InferenceRequest:
        """Parse a request as far as routing and policy need."""
        return parse_messages_request(raw, headers)

    def parse_count(self, raw: bytes, headers: Mapping[str, str]) -> InferenceRequest:
        """Parse a request whose tokens are to be counted; nothing is generated for it."""
        return parse_messages_request(raw, headers, counting=True)

    def conversation(self, request: InferenceRequest) -> Conversation:
        """Return all that a request of this shape says."""
        return read_conversation(request)

    def write(self, completion: Completion, request: InferenceRequest, id_: RequestId) -> bytes:
        """Return the body of an answer that is not streamed."""
        return write_message(completion, request, id_)

    def writer(self, request: InferenceRequest, id_: RequestId) -> StreamWriter:
        """Return what writes a streamed answer."""
        return MessagesWriter(request, id_)

    def error(self, error: TurnoutError | UpstreamError) -> ErrorReply:
        """Return what the client reads; an upstream's own body of this shape stays as it came."""
        return write_error(error)

    def prepare(
        self, request: InferenceRequest, deployment: Deployment, said: Conversation | None
    ) -> JsonObject:
        """Return the body for a deployment, its quirks seen to."""
        return prepare_body(request, deployment, said)

    def count_body(self, request: InferenceRequest, deployment: Deployment) -> JsonObject:
        """Return the body that asks how many tokens a request of this shape sends."""
        return count_body(request, deployment)

    def needs_whole(self, request: InferenceRequest, deployment: Deployment) -> bool:
        """Return whether calls may have to be read from the text."""
        return deployment.calls_in_text and bool(request.tools) and request.tool_choice != "none"

    def is_end(self, event: ServerEvent) -> bool:
        """Return whether the stream is whole with this event: its stop reason came."""
        kind = as_text(event.data.get("type")) or event.name
        if kind == "message_delta":
            return bool(as_object(event.data.get("delta")).get("stop_reason"))
        return kind in {"message", "message_stop"}

    def read(
        self, body: JsonObject, request: InferenceRequest, deployment: Deployment
    ) -> ReadReply:
        """Return a whole answer; `UpstreamError` where it is none."""
        in_text = self.needs_whole(request, deployment)
        return read_message(body, as_objects(request.body.get("tools")) if in_text else [])

    def reader(self, request: InferenceRequest, deployment: Deployment) -> StreamReader:
        """Return what understands a streamed answer."""
        del request
        return MessagesReader(deployment.model)
