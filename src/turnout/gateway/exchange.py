"""A request as the stages of the gateway hand it on, and what an upstream gives back."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from turnout.core.govern.keys import KeyLimits, Role
from turnout.core.ids import ModelId, SessionId, ToolCallId
from turnout.core.inference import FinishReason, RoutingAsk, RoutingReport, StepKind
from turnout.core.json import JsonObject
from turnout.core.observe.spans import TraceParent
from turnout.core.usage import Usage
from turnout.gateway.dialog.conversation import Shape
from turnout.gateway.dialog.events import Ending, Native, Piece, Reply
from turnout.gateway.dialog.thoughts import Thought

__all__ = [
    "Caller",
    "Completion",
    "ConnectionAsk",
    "DeclaredTool",
    "InferenceRequest",
    "ServerEvent",
    "StreamDelta",
    "StreamEnd",
    "UpstreamError",
    "UpstreamReply",
    "UpstreamTimeoutError",
]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request."""

    key: str
    """Name of the key, never the key; scopes the session ids."""
    project: str = "default"
    policies: tuple[str, ...] = ()
    """Names of the policies it may use, its own first; empty: the default policy alone."""
    admin: bool = False
    """Whether it may read and change what governs everybody."""
    limits: KeyLimits = field(default_factory=KeyLimits)
    role: Role = "models"


@dataclass(frozen=True, slots=True)
class DeclaredTool:
    """A tool that a request declares, as far as policy looks at it."""

    name: str
    """Function name; for a tool without one, its type; `mcp:server/tool` for one of a connection,
    `mcp:server/*` for all of a connection's."""


@dataclass(frozen=True, slots=True)
class ConnectionAsk:
    """A connection of the gateway that a request names, for the model to use."""

    name: str
    tools: tuple[str, ...] | None = None
    """Those that the request restricts itself to; None: all that the policy allows."""
    url: str | None = None
    """Where the client says that it is; it must be where the gateway knows it to be."""


@dataclass(frozen=True, slots=True)
class InferenceRequest:
    """One request of any API shape, parsed as far as routing and policy need."""

    body: JsonObject
    """As the client sent it, without our extensions; unknown fields kept."""
    model: str
    """`auto`, a model id, a deployment id, or an alias of the policy."""
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
    trace: TraceParent | None = None
    """Where it belongs in the trace of its sender."""
    shape: Shape = "chat"
    topic: str = ""
    """The standing instructions and what was asked last, both ends of each; where the request
    names no task kind."""
    modalities: frozenset[str] = frozenset()
    """What it holds beside text: image, audio, file."""
    past_calls: tuple[ToolCallId, ...] = ()
    """Every call that an assistant message of the conversation makes, in order."""
    previous: str | None = None
    """Id of the stored response that the conversation continues."""
    keeps: bool = False
    """Whether the response is to be stored, so that it can be continued."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Those that an upstream of the same shape is to see, names in lower case."""
    thoughts: Mapping[ToolCallId, Thought] = field(default_factory=dict)
    """What was thought before past calls, where that was kept."""
    caching: bool = True
    """Whether cache marks are to be set where a deployment needs them."""
    connections: tuple[ConnectionAsk, ...] = ()
    """Their entries are still in the body; they become functions before a model is asked."""


@dataclass(frozen=True, slots=True)
class UpstreamReply:
    """A whole answer of an upstream, in its own shape."""

    body: JsonObject
    latency_ms: int


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event of an upstream's stream."""

    name: str
    """Empty where the stream names none."""
    data: JsonObject


@dataclass(frozen=True, slots=True)
class Completion:
    """A request that was served whole."""

    reply: Reply
    native: Native | None
    """The upstream's answer, its tool calls mended; None where it was made here."""
    usage: Usage
    report: RoutingReport


@dataclass(frozen=True, slots=True)
class StreamDelta:
    """One piece of a streamed answer that the client may see at once."""

    piece: Piece
    model: ModelId
    """Whose answer it is."""


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """The end of a streamed answer; its receipt is written."""

    ending: Ending
    """Its pieces have been sent."""
    usage: Usage
    report: RoutingReport

    @property
    def finish(self) -> FinishReason:
        """Why the model stopped."""
        return self.ending.finish


class UpstreamError(Exception):
    """An upstream did not answer as asked; the engine decides what follows."""

    timed_out = False
    """Whether the upstream was silent for too long."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None,
        retry_after: float | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        shape: Shape = "chat",
        said: str = "",
    ) -> None:
        super().__init__(message)
        self.status = status
        """HTTP status; None where no answer came (refused, reset, timed out, cut)."""
        self.retry_after = retry_after
        """Seconds, from the Retry-After header."""
        self.body = body
        """The upstream's own error body where it is one of its shape, free of our key."""
        self.shape: Shape = shape
        """The shape of that body."""
        self.said = said
        """The upstream's own words; empty where it gave none."""
        self.headers = headers or {}

    def sentence(self, who: str) -> str:
        """Return what went wrong as a sentence about `who`; the message itself names nobody."""
        text = f"{who} {self}"
        return text if text.endswith((".", "!", "?")) else f"{text}."

    @property
    def retryable(self) -> bool:
        """Whether another deployment or a later try may do better."""
        return self.status is None or self.status in {408, 409, 425, 429} or self.status >= 500


class UpstreamTimeoutError(UpstreamError):
    """An upstream took too long, or said nothing for too long."""

    timed_out = True
