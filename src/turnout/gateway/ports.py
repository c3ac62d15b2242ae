"""What the gateway needs from outside; `wiring` hands in what satisfies it."""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from turnout.core.ids import RequestId, SessionId, ToolCallId
from turnout.core.json import JsonObject
from turnout.core.money import Micros
from turnout.core.policies import Reservation, SessionCaps, SessionTotals
from turnout.core.receipts import Receipt
from turnout.core.tools import Holder
from turnout.gateway.catalog import Deployment, Provider
from turnout.gateway.exchange import UpstreamReply

__all__ = [
    "AffinityStore",
    "Holder",
    "ProbeStore",
    "ReceiptStore",
    "Reservation",
    "SessionLedger",
    "SessionTotals",
    "Upstream",
]


class Upstream(Protocol):
    """One API shape spoken to providers."""

    async def complete(
        self, provider: Provider, deployment: Deployment, body: JsonObject
    ) -> UpstreamReply:
        """Send a request that is not streamed; `UpstreamError` where it was not answered."""
        ...

    def stream(
        self, provider: Provider, deployment: Deployment, body: JsonObject
    ) -> AsyncGenerator[JsonObject, None]:
        """Send a streamed request and yield its chunks, `[DONE]` left out.

        `UpstreamError` before the first chunk where it was refused, later where it was cut.
        Closing the iterator closes the connection.
        """
        ...

    async def models(self, provider: Provider) -> tuple[str, ...]:
        """Return the names of the models that the provider lists; `UpstreamError` if none."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


class ReceiptStore(Protocol):
    """Every request's receipt."""

    async def add(self, receipt: Receipt) -> None:
        """Write a receipt once, durably."""
        ...

    async def get(self, request_id: RequestId) -> Receipt | None:
        """Return a receipt; None where there is none."""
        ...

    async def of_session(self, session: SessionId, *, key: str) -> Sequence[Receipt]:
        """Return a session's receipts of one key, oldest first."""
        ...


class SessionLedger(Protocol):
    """Requests and spend of each session, exact under concurrency and across processes."""

    async def reserve(
        self,
        scope: str,
        session: SessionId,
        request_id: RequestId,
        worst: Micros,
        caps: SessionCaps,
    ) -> Reservation:
        """Count a request and reserve its worst-case cost, or refuse, in one transaction.

        A request is granted while requests < max_requests and spent + reserved < max_spend.
        """
        ...

    async def settle(self, request_id: RequestId, actual: Micros) -> None:
        """Replace a reservation by what the request cost."""
        ...

    async def totals(self, scope: str, session: SessionId) -> SessionTotals:
        """Return what a session has used."""
        ...


class AffinityStore(Protocol):
    """Which model made each tool call."""

    async def remember(self, scope: str, calls: Sequence[ToolCallId], holder: Holder) -> None:
        """Note the model that made these calls."""
        ...

    async def holder(self, scope: str, calls: Sequence[ToolCallId]) -> Holder | None:
        """Return the model that made the first known of these calls; None where none is known."""
        ...


class ProbeStore(Protocol):
    """What probes showed, kept between runs."""

    async def put(self, key: str, text: str) -> None:
        """Keep a probe's result as JSON under the hash of endpoint and model."""
        ...

    async def get(self, key: str) -> str | None:
        """Return the result kept under a key; None where there is none."""
        ...
