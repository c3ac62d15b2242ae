"""What the pages of governance work with; `wiring` hands in what satisfies it."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from turnout.core.clock import Clock
from turnout.core.govern.connections import Connection, ConnectionTool
from turnout.core.govern.keys import KeyRecord
from turnout.core.ids import DeploymentId, RequestId
from turnout.core.policies import Policy
from turnout.core.receipts import Decision, Receipt
from turnout.gateway.admin.audit import AuditBook
from turnout.gateway.evaluations.desk import EvaluationDesk
from turnout.gateway.evidence import ProbeResult
from turnout.gateway.exchange import (
    Caller,
    Completion,
    InferenceRequest,
    StreamDelta,
    StreamEnd,
)
from turnout.gateway.keys.desk import KeyDesk
from turnout.gateway.measure.probing import ProbeDesk
from turnout.gateway.notices.desk import WebhookDesk
from turnout.gateway.notices.ports import HappeningsReader, ToolsReader, UsageReader
from turnout.gateway.policy.desk import PolicyDesk
from turnout.web.console.govern.views.models import ModelsSeen
from turnout.web.runs.streams import Streams

__all__ = ["ConnectionsKnown", "GovernParts", "Models", "ModelsKnown", "Noticed"]


class Models(Protocol):
    """The engine of the gateway, as a caller asks it."""

    async def complete(
        self, caller: Caller, request: InferenceRequest, request_id: RequestId
    ) -> Completion:
        """Serve a request whole; `GatewayError` or `UpstreamError` where it was not."""
        ...

    def stream(
        self, caller: Caller, request: InferenceRequest, request_id: RequestId
    ) -> AsyncGenerator[StreamDelta | StreamEnd, None]:
        """Serve it piece by piece; closing it ends the request as cancelled."""
        ...

    async def explain(
        self, caller: Caller, request: InferenceRequest, draft: Policy | None = None
    ) -> Decision:
        """Return the decision that a request would get; no model is called."""
        ...

    async def receipt(self, caller: Caller, request_id: RequestId) -> Receipt | None:
        """Return the receipt of a request of the same key; None: none."""
        ...

    def model_names(self, caller: Caller) -> tuple[str, ...]:
        """Return what a request of that caller may name as its model, `auto` first."""
        ...


@dataclass(frozen=True, slots=True)
class ModelsKnown:
    """The catalog, what is known of it, and how more is found out."""

    seen: Callable[[], ModelsSeen]
    probes: ProbeDesk
    probed: Callable[[DeploymentId], Awaitable[ProbeResult | None]]
    """What the newest probe of a deployment showed; None where there was none."""


@dataclass(frozen=True, slots=True)
class ConnectionsKnown:
    """The MCP servers that are set up."""

    tools: Callable[[str], Awaitable[tuple[ConnectionTool, ...]]]
    """Asks one of the gateway's for its tools; `ConnectionFailedError` where it gives none."""
    of_gateway: Mapping[str, Connection] = field(default_factory=dict)
    of_sandboxes: Sequence[Connection] = ()


@dataclass(frozen=True, slots=True)
class Noticed:
    """What past requests left."""

    usage: UsageReader
    tools: ToolsReader
    happenings: HappeningsReader
    audit: AuditBook
    webhooks: WebhookDesk


@dataclass(frozen=True, slots=True)
class GovernParts:
    """All of it."""

    policies: PolicyDesk
    keys: KeyDesk
    noticed: Noticed
    engine: Models | None
    """None where models are served elsewhere: then nothing is asked or explained here."""
    models: ModelsKnown
    connections: ConnectionsKnown
    evaluations: EvaluationDesk
    results: Path
    """Folder with the results of evaluations."""
    clock: Clock
    streams: Streams
    """Those of the process, which end when it stops."""
    doubt: Callable[[KeyRecord], Awaitable[str]]
    """Says why the cap on spend of a key keeps it from every model; empty where it does not."""
