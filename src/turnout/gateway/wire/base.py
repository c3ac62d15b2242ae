"""What a shape can do: be spoken by clients, be spoken to upstreams."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from turnout.core.ids import RequestId
from turnout.core.json import JsonObject
from turnout.core.usage import Usage
from turnout.errors import TurnoutError
from turnout.gateway.catalog import Deployment
from turnout.gateway.dialog.conversation import Conversation, Shape
from turnout.gateway.dialog.events import Ending, Native, Piece, Reply
from turnout.gateway.exchange import (
    Completion,
    InferenceRequest,
    ServerEvent,
    StreamDelta,
    StreamEnd,
    UpstreamError,
)

__all__ = [
    "ClientShape",
    "ErrorReply",
    "ReadReply",
    "StreamReader",
    "StreamWriter",
    "UpstreamShape",
]


@dataclass(frozen=True, slots=True)
class ErrorReply:
    """An error as it goes to the client."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReadReply:
    """An upstream's whole answer, understood."""

    reply: Reply
    native: Native
    """The body, mended."""
    repairs: tuple[str, ...] = ()
    """One phrase for each kind of mend."""


class StreamWriter(Protocol):
    """Writes one streamed answer as the bytes of server-sent events."""

    def piece(self, delta: StreamDelta) -> bytes:
        """Return the events of one piece; empty where it shows nothing in this shape."""
        ...

    def end(self, end: StreamEnd) -> bytes:
        """Return the last events, with the `routing` report and the usage."""
        ...

    def error(self, error: TurnoutError | UpstreamError) -> bytes:
        """Return the event of an error after the stream began; nothing follows it."""
        ...


class ClientShape(Protocol):
    """A shape as clients speak it."""

    @property
    def shape(self) -> Shape:
        """Its name."""
        ...

    def parse(self, raw: bytes, headers: Mapping[str, str]) -> InferenceRequest:
        """Parse a request as far as routing and policy need; unknown fields are kept.

        `headers` has lower-case names. `GatewayError` (400) names the field that is wrong.
        """
        ...

    def conversation(self, request: InferenceRequest) -> Conversation:
        """Return all that a request of this shape says.

        `GatewayError` (400) names what cannot be said in another shape.
        """
        ...

    def write(self, completion: Completion, request: InferenceRequest, id_: RequestId) -> bytes:
        """Return the body of an answer that is not streamed, with the `routing` report."""
        ...

    def writer(self, request: InferenceRequest, id_: RequestId) -> StreamWriter:
        """Return what writes a streamed answer."""
        ...

    def error(self, error: TurnoutError | UpstreamError) -> ErrorReply:
        """Return what the client reads; an upstream's own body of this shape stays as it came."""
        ...


class StreamReader(Protocol):
    """Understands one upstream's stream; its state is what has come so far."""

    @property
    def usage(self) -> Usage | None:
        """The counts so far; None where the upstream sent none."""
        ...

    @property
    def repairs(self) -> tuple[str, ...]:
        """What was mended so far, one phrase for each kind."""
        ...

    def read(self, event: ServerEvent) -> Iterable[Piece]:
        """Take an event in and return what the client may see of it; to be run to its end.

        Usage and finish reason are kept for the end. `UpstreamError` where the event is an error
        in band or cannot be understood.
        """
        ...

    def end(self) -> Ending:
        """Return how the answer ends; `UpstreamError` where the upstream stopped before that."""
        ...

    def so_far(self) -> Reply:
        """Return the answer so far, or whole."""
        ...


class UpstreamShape(Protocol):
    """A shape as upstreams speak it."""

    @property
    def shape(self) -> Shape:
        """Its name."""
        ...

    @property
    def path(self) -> str:
        """Where requests go, below the provider's base URL."""
        ...

    def prepare(
        self, request: InferenceRequest, deployment: Deployment, said: Conversation | None
    ) -> JsonObject:
        """Return the body for a deployment, its quirks seen to.

        The request's own body is the base where it is of this shape (`said` is None then), so
        that unknown fields pass; else `said` is written in this shape. The same request always
        gives the same bytes: prompt caches live on that.
        """
        ...

    def needs_whole(self, request: InferenceRequest, deployment: Deployment) -> bool:
        """Return whether a streamed request has to be asked whole, to be repaired."""
        ...

    def is_end(self, event: ServerEvent) -> bool:
        """Return whether the stream is whole with this event, whatever follows."""
        ...

    def read(
        self, body: JsonObject, request: InferenceRequest, deployment: Deployment
    ) -> ReadReply:
        """Return a whole answer; `UpstreamError` where it is none."""
        ...

    def reader(self, request: InferenceRequest, deployment: Deployment) -> StreamReader:
        """Return what understands a streamed answer."""
        ...
