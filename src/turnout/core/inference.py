"""What is asked of a model, and what comes back, as our own agent sees it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from turnout.core.ids import DeploymentId, ModelId, ProviderName, RequestId, SessionId
from turnout.core.json import JsonObject
from turnout.core.messages import AssistantMessage, Message
from turnout.core.money import Micros
from turnout.core.tools import Tool
from turnout.core.usage import Usage

__all__ = [
    "BEHALF_HEADER",
    "CALL_KIND_HEADER",
    "LASTING_HEADER",
    "Alternative",
    "FinishReason",
    "ModelReply",
    "ModelRequest",
    "Objective",
    "RoutingAsk",
    "RoutingReport",
    "StepKind",
    "TaskKind",
    "TaskSource",
]

Objective = Literal["quality", "latency", "cost", "balanced"]
"""What a call is routed for; wire field `routing.optimize`."""

TaskKind = Literal["coding", "summarisation", "reasoning", "extraction", "chat", "general"]
"""What a call is about; wire field `routing.task`."""

TaskSource = Literal["request", "inferred", "default"]

StepKind = Literal["plan", "act", "summary", "answer", "review"]
"""What a step of our agent is for."""

FinishReason = Literal["stop", "tool_calls", "length", "content_filter"]

BEHALF_HEADER = "x-turnout-on-behalf"
"""Header by which a worker tells the gateway who ordered what it works on: `KEY/PROJECT/POLICY`."""

CALL_KIND_HEADER = "x-turnout-call-kind"
"""Header by which our agent tells the gateway the kind of step a call belongs to."""

LASTING_HEADER = "x-turnout-lasting"
"""`1` with an idempotency key: who asks comes back for the answer, even when it goes away."""


@dataclass(frozen=True, slots=True)
class RoutingAsk:
    """The `routing` object of a request; every field may be absent."""

    optimize: Objective | None = None
    task: TaskKind | None = None
    session: SessionId | None = None
    policy: str | None = None
    tools: tuple[str, ...] | None = None
    """Nothing else may be declared on this request; None: whatever the policy allows."""
    read_only: bool = False
    """Whether only tools that the policy lists as changing nothing may be declared."""
    mcp_tools: Mapping[str, str] = field(default_factory=dict)
    """By declared function that stands for a tool of an MCP server which the client runs: that
    tool, as policies name it, `mcp:server/tool`."""

    def policy_name(self, function: str) -> str:
        """Return the name by which policies and receipts know a declared function."""
        return self.mcp_tools.get(function, function)


@dataclass(frozen=True, slots=True)
class RoutingReport:
    """The `routing` object of a response: which deployment answered, and why."""

    model: ModelId
    provider: ProviderName
    deployment: DeploymentId
    objective: Objective
    task: TaskKind
    task_source: TaskSource
    session: SessionId | None
    sticky: bool
    """True where an open tool call kept the conversation on this model."""
    fallback: bool
    """True where the first choice failed and this is another deployment."""
    policy_revision: int
    reason: str
    """One sentence for people."""
    cost_micros: Micros | None
    """None where the deployment has no known price."""
    caches: bool = False
    """Whether the deployment caches prompts."""
    kept_warm: bool = False
    """Whether it was chosen because its cache holds the conversation so far."""
    context_tokens: int | None = None
    """Window of the model, input and output together; None where it is not known."""
    connection_calls: tuple[str, ...] = ()
    """Tools of connections that the gateway ran for the answer, `mcp:server/tool`, in order."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call as our agent makes it."""

    messages: tuple[Message, ...]
    call_kind: StepKind
    routing: RoutingAsk
    idempotency_key: str
    """The same key is sent when the call is repeated after a crash."""
    model: str = "auto"
    tools: tuple[Tool, ...] = ()
    tool_choice: str = "auto"
    """`auto`, `required`, `none`, or the name of one tool."""
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    response_schema: JsonObject | None = None
    """JSON Schema that the text of the reply must satisfy."""
    thinking: bool | None = None
    """Wire field `extended_thinking`; None leaves it to the policy."""
    connections: tuple[str, ...] = ()
    """Connections of the gateway whose tools the model may use: `server` or `server/tool`."""
    stop: tuple[str, ...] = ()
    """Texts before which the reply ends."""
    alternatives: int = 0
    """Of each token, how many the reply is to tell that might have stood there, itself included."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """A token that might have stood in a reply."""

    at: int
    """Characters of the reply before it."""
    text: str
    instead: str
    """The token that was said there."""
    logprob: float
    """Natural logarithm of its probability."""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """One model call's answer as our agent sees it."""

    request_id: RequestId
    message: AssistantMessage
    finish_reason: FinishReason
    usage: Usage
    routing: RoutingReport
    latency_ms: int = field(default=0)
    """Wall time from the first byte sent to the last byte received."""
    alternatives: tuple[Alternative, ...] = ()
    """The likeliest of those asked for, likeliest first."""
