"""OpenAI's responses: the shape that the Agents SDK and Codex speak."""

import time
from collections.abc import Callable, Mapping

import orjson

from turnout.core.ids import ModelId, RequestId
from turnout.core.json import JsonObject, as_text
from turnout.errors import TurnoutError
from turnout.gateway.catalog import Deployment
from turnout.gateway.dialog.conversation import Conversation, Shape
from turnout.gateway.exchange import Completion, InferenceRequest, ServerEvent, UpstreamError
from turnout.gateway.repair import needs_whole_reply
from turnout.gateway.wire.base import ErrorReply, ReadReply, StreamReader, StreamWriter
from turnout.gateway.wire.chat.errors import write_error
from turnout.gateway.wire.report import write_report
from turnout.gateway.wire.responses.answer import read_usage, write_output, write_usage
from turnout.gateway.wire.responses.body import prepare_body
from turnout.gateway.wire.responses.envelope import Envelope, ending
from turnout.gateway.wire.responses.history import read_conversation
from turnout.gateway.wire.responses.items import input_items
from turnout.gateway.wire.responses.reader import ENDS, ResponsesReader, read_whole
from turnout.gateway.wire.responses.request import parse_responses_request
from turnout.gateway.wire.responses.tools import Declared, read_tools
from turnout.gateway.wire.responses.writer import ResponsesWriter

__all__ = ["ResponsesShape", "declared_tools"]


class ResponsesShape:
    """The shape, as clients speak it and as upstreams do."""

    @property
    def shape(self) -> Shape:
        """Its name."""
        return "responses"

    @property
    def path(self) -> str:
        """Where requests go, below the provider's base URL."""
        return "/responses"

    def parse(self, raw: bytes, headers: Mapping[str, str]) -> InferenceRequest:
        """Parse a request as far as routing and policy need; unknown fields are kept."""
        return parse_responses_request(raw, headers)

    def conversation(self, request: InferenceRequest) -> Conversation:
        """Return all that a request says; `GatewayError` (400) where no other shape can."""
        return read_conversation(request.body)

    def write(self, completion: Completion, request: InferenceRequest, id_: RequestId) -> bytes:
        """Return the body of an answer that is not streamed."""
        model, native = completion.report.model, completion.native
        envelope = Envelope(request, id_, int(time.time()))
        if native is not None and native.shape == "responses":
            body = envelope.native(native.value, model)
            if read_usage(body.get("usage")) is None:
                body["usage"] = write_usage(completion.usage)
        else:
            reply = completion.reply
            said = ending(reply.finish)
            cut = said["status"] == "incomplete"
            tools = declared_tools(request)
            said["output"] = write_output(reply.parts, tools, id_, model, cut=cut)
            said["usage"] = write_usage(completion.usage)
            body = envelope.written(model, said)
        body["routing"] = write_report(completion.report)
        return orjson.dumps(body)

    def writer(self, request: InferenceRequest, id_: RequestId) -> StreamWriter:
        """Return what writes a streamed answer."""
        envelope = Envelope(request, id_, int(time.time()))
        return ResponsesWriter(envelope, declared_tools(request), id_, ModelId(request.model))

    def error(self, error: TurnoutError | UpstreamError) -> ErrorReply:
        """Return what the client reads; an upstream's own body of this shape stays as it came."""
        return write_error(error, "responses")

    def prepare(
        self, request: InferenceRequest, deployment: Deployment, said: Conversation | None
    ) -> JsonObject:
        """Return the body for a deployment; the same request always gives the same bytes."""
        return prepare_body(request, deployment, said)

    def needs_whole(self, request: InferenceRequest, deployment: Deployment) -> bool:
        """Return whether a streamed request has to be asked whole, to be repaired."""
        return needs_whole_reply(request, deployment)

    def is_end(self, event: ServerEvent) -> bool:
        """Return whether the stream is whole with this event."""
        return (as_text(event.data.get("type")) or event.name) in ENDS

    def read(
        self, body: JsonObject, request: InferenceRequest, deployment: Deployment
    ) -> ReadReply:
        """Return a whole answer; `UpstreamError` where it is none."""
        return read_whole(body, request, deployment)

    def reader(self, _request: InferenceRequest, deployment: Deployment) -> StreamReader:
        """Return what understands a streamed answer."""
        return ResponsesReader(deployment)


def declared_tools(request: InferenceRequest) -> Callable[[], Mapping[str, Declared]]:
    """Return what looks the request's tools up by name; it reads them when first asked."""
    known: list[Mapping[str, Declared]] = []

    def tools() -> Mapping[str, Declared]:
        if not known:
            known.append(read_tools(request.body, input_items(request.body)).by_name())
        return known[0]

    return tools
