"""Why a deployment was chosen, and what the request used and cost."""

import json
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from math import isfinite
from typing import Literal

from pydantic import TypeAdapter

from turnout.core.ids import DeploymentId, ModelId, RequestId, SessionId
from turnout.core.inference import Objective, RoutingReport, StepKind, TaskKind, TaskSource
from turnout.core.json import ascii_json, encode_values
from turnout.core.money import Micros
from turnout.core.tools import MCP
from turnout.core.usage import Usage

__all__ = [
    "Attempt",
    "Candidate",
    "ConnectionCall",
    "Decision",
    "Grounds",
    "Operation",
    "Receipt",
    "ReceiptStatus",
    "WireShape",
    "decode_receipt",
    "encode_receipt",
]

ReceiptStatus = Literal["ok", "refused", "failed", "truncated", "cancelled", "unknown"]
"""unknown: the gateway died over it, so that nobody can say whether a model was asked and paid."""

WireShape = Literal["chat", "messages", "responses"]
"""The API that a client spoke."""

Operation = Literal["answer", "count_tokens"]
"""What a client wanted: an answer of a model, or the length of a request in tokens."""


@dataclass(frozen=True, slots=True)
class Grounds:
    """What one figure of a candidate rests on."""

    figure: Literal["tool_success", "quality", "latency"]
    value: float
    """A share from 0 to 1; of latency, milliseconds to the first token."""
    samples: int | None
    """How many observations; None: stated without a number."""
    age_seconds: int | None
    """Of the newest observation; None: stated without a date."""
    source: str
    """Who says so: `measured`, or the source of a quality."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One deployment that the decision looked at."""

    deployment: DeploymentId
    score: float | None
    """The ranked figure, higher is better; None where dropped or unknown."""
    dropped: str | None
    """Why it was filtered out; None where it was eligible."""
    note: str = ""
    """What the score was made of."""
    grounds: tuple[Grounds, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """Which deployments may serve a request, best first, and everything that was seen."""

    objective: Objective
    task: TaskKind
    task_source: TaskSource
    order: tuple[DeploymentId, ...]
    """Eligible deployments, best first; empty where none is."""
    candidates: tuple[Candidate, ...]
    sticky: bool
    policy_revision: int
    reason: str
    """One sentence for people."""
    caches: bool = False
    """Whether the first choice caches prompts."""
    kept_warm: bool = False
    """Whether it comes first because its cache holds the conversation so far."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at one deployment."""

    deployment: DeploymentId
    status: int | None
    """HTTP status of the upstream; None where there was no answer."""
    error: str | None
    """What went wrong; None where it succeeded."""
    latency_ms: int


@dataclass(frozen=True, slots=True)
class ConnectionCall:
    """A tool of a connection that the gateway itself ran while it served a request."""

    connection: str
    tool: str
    """As its server names it."""
    error: str | None
    """What went wrong; None where it gave a result."""
    latency_ms: int

    @property
    def full_name(self) -> str:
        """As policies name it."""
        return f"{MCP}{self.connection}/{self.tool}"


@dataclass(frozen=True, slots=True)
class Receipt:
    """The one record of a request at the gateway, written also for failures."""

    request_id: RequestId
    at: datetime
    session: SessionId | None
    key: str
    """Name of the caller's key, never the key itself."""
    status: ReceiptStatus
    http_status: int
    error_code: str | None
    asked_model: str
    call_kind: StepKind | None
    decision: Decision | None
    """None where the request was refused before a decision."""
    routing: RoutingReport | None
    """None where nothing was served."""
    attempts: tuple[Attempt, ...]
    usage: Usage
    cost_micros: Micros | None
    """None where the price is unknown."""
    latency_ms: int
    ttft_ms: int | None
    """Time to the first token of a stream; None where not streamed."""
    tools_declared: tuple[str, ...]
    tools_called: tuple[str, ...]
    tools_outside: tuple[str, ...] = ()
    """Tools outside the policy's list: recorded in dry run, the reason in enforce."""
    repairs: tuple[str, ...] = ()
    """What was mended in the model's tool calls."""
    project: str = "default"
    """Of the caller's key."""
    policy: str = ""
    """Name of the policy that was applied; empty where the request was refused before that."""
    policy_revision: int | None = None
    """None where `policy` is empty."""
    shape: WireShape = "chat"
    operation: Operation = "answer"
    replay_of: RequestId | None = None
    """The request whose kept answer was given again; usage and cost are on its receipt alone."""
    connection_calls: tuple[ConnectionCall, ...] = ()
    """In the order in which they ended."""
    traceparent: str = ""
    """Where it belongs in the trace of its sender, as the header says; empty where it said none."""

    @property
    def model(self) -> ModelId | None:
        """The model that answered; None where none did."""
        return self.routing.model if self.routing else None


@cache
def _adapter() -> TypeAdapter[Receipt]:
    return TypeAdapter(Receipt)


def encode_receipt(receipt: Receipt) -> str:
    """Return `receipt` as one JSON object in ASCII."""
    if receipt.decision is None or _is_finite(receipt.decision):
        return encode_values(receipt)
    return ascii_json(_adapter().dump_python(receipt, mode="json"))


def decode_receipt(text: str | bytes) -> Receipt:
    """Return the receipt that `encode_receipt` wrote; ValueError where it is none."""
    return _adapter().validate_python(json.loads(text))


def _is_finite(decision: Decision) -> bool:
    for candidate in decision.candidates:
        if candidate.score is not None and not isfinite(candidate.score):
            return False
        for grounds in candidate.grounds:
            if not isfinite(grounds.value) or not isfinite(grounds.age_seconds or 0.0):
                return False
    return True
