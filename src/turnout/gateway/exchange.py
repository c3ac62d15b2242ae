"""A request as the stages of the gateway hand it on, and what an upstream gives back."""

from collections.abc import Mapping
from dataclasses import dataclass

from turnout.core.ids import SessionId, ToolCallId
from turnout.core.inference import RoutingAsk, RoutingReport, StepKind
from turnout.core.json import JsonObject
from turnout.core.usage import Usage

__all__ = [
    "Caller",
    "Completion",
    "DeclaredTool",
    "InferenceRequest",
    "StreamDelta",
    "StreamEnd",
    "UpstreamError",
    "UpstreamReply",
]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request."""

    key: str
    """Name of the key, never the key; scopes the session ids."""


@dataclass(frozen=True, slots=True)
class DeclaredTool:
    """A tool that a request declares, as far as policy looks at it."""

    name: str
    """Function name; for a tool without one, its type."""


@dataclass(frozen=True, slots=True)
class InferenceRequest:
    """One request of any API shape, parsed as far as routing and policy need."""

    body: JsonObject
    """As the client sent it, without our extensions; unknown fields kept."""
    model: str
    """`auto`, a model id, or a deployment id."""
    stream: bool
    include_usage: bool
    """Whether the client of a stream asked for a usage chunk."""
    tools: tuple[DeclaredTool, ...]
    tool_choice: str
    """`auto`, `required`, `none`, or the name of one tool."""
    max_tokens: int | None
    open_calls: tuple[ToolCallId, ...]
    """Calls whose results end the conversation so far: the loop is open on their model."""
    ask: RoutingAsk
    session: SessionId | None
    """First found: routing object, headers, body."""
    input_tokens_estimate: int
    wants_json_schema: bool
    thinking: bool | None
    call_kind: StepKind | None
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True)
class UpstreamReply:
    """A whole completion from an upstream, in the chat shape."""

    body: JsonObject
    latency_ms: int


@dataclass(frozen=True, slots=True)
class Completion:
    """A request that was served whole."""

    body: JsonObject
    """The upstream's answer in the chat shape, its tool calls mended."""
    usage: Usage
    report: RoutingReport


@dataclass(frozen=True, slots=True)
class StreamDelta:
    """One piece of a streamed answer that the client may see at once."""

    chunk: JsonObject
    """A chunk of the chat shape, without usage and without a finish reason."""


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """The end of a streamed answer; its receipt is written."""

    chunk: JsonObject
    """The chunk of the chat shape that carries every choice's finish reason."""
    usage: Usage
    usage_body: JsonObject | None
    """The counts as the upstream sent them; None where it sent none."""
    report: RoutingReport


class UpstreamError(Exception):
    """An upstream did not answer as asked; the engine decides what follows."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None,
        retry_after: float | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timed_out: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        """HTTP status; None where no answer came (refused, reset, timed out, cut)."""
        self.retry_after = retry_after
        """Seconds, from the Retry-After header."""
        self.body = body
        """The upstream's own error body where it is JSON of the same shape."""
        self.headers = headers or {}
        self.timed_out = timed_out
        """True where the upstream was silent for too long."""

    def sentence(self, who: str) -> str:
        """Return what went wrong as a sentence about `who`; the message itself names nobody."""
        text = f"{who} {self}"
        return text if text.endswith((".", "!", "?")) else f"{text}."

    @property
    def retryable(self) -> bool:
        """Whether another deployment or a later try may do better."""
        return self.status is None or self.status in {408, 409, 425, 429} or self.status >= 500
