"""Why a deployment was chosen, and what the request used and cost."""

import json
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Literal

from pydantic import TypeAdapter

from turnout.core.ids import DeploymentId, ModelId, RequestId, SessionId
from turnout.core.inference import Objective, RoutingReport, StepKind, TaskKind, TaskSource
from turnout.core.json import ascii_json
from turnout.core.money import Micros
from turnout.core.usage import Usage

__all__ = [
    "Attempt",
    "Candidate",
    "Decision",
    "Receipt",
    "ReceiptStatus",
    "decode_receipt",
    "encode_receipt",
]

ReceiptStatus = Literal["ok", "refused", "failed", "truncated", "cancelled"]


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

    @property
    def model(self) -> ModelId | None:
        """The model that answered; None where none did."""
        return self.routing.model if self.routing else None


@cache
def _adapter() -> TypeAdapter[Receipt]:
    return TypeAdapter(Receipt)


def encode_receipt(receipt: Receipt) -> str:
    """Return `receipt` as one JSON object in ASCII."""
    return ascii_json(_adapter().dump_python(receipt, mode="json"))


def decode_receipt(text: str | bytes) -> Receipt:
    """Return the receipt that `encode_receipt` wrote; ValueError where it is none."""
    return _adapter().validate_python(json.loads(text))
