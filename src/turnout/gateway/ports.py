"""What the gateway needs from outside; `wiring` hands in what satisfies it."""

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from turnout.core.govern.closing import Charge, ChargeKind, Closing, KeptReply, StoredResponse
from turnout.core.govern.evidence import Observation, QualityResult, Rates
from turnout.core.govern.keys import KeyEntry, KeyRecord
from turnout.core.govern.replies import Standing
from turnout.core.ids import ProviderName, RequestId, SessionId, ToolCallId
from turnout.core.inference import RoutingAsk
from turnout.core.json import JsonObject
from turnout.core.money import Micros
from turnout.core.policies import Policy, Reservation, SessionTotals
from turnout.core.receipts import Receipt
from turnout.core.tools import Holder
from turnout.gateway.catalog import Provider
from turnout.gateway.exchange import Caller, InferenceRequest, ServerEvent, UpstreamReply

__all__ = [
    "AffinityStore",
    "Books",
    "EvidenceStore",
    "Holder",
    "KeyStore",
    "Noticing",
    "Policies",
    "ProbeStore",
    "ProviderKeys",
    "ReceiptStore",
    "ReplyStore",
    "Reservation",
    "ResponseStore",
    "SessionTotals",
    "Upstream",
]


class Upstream(Protocol):
    """Providers of any shape, over the network."""

    async def complete(
        self, provider: Provider, path: str, body: JsonObject, headers: Mapping[str, str]
    ) -> UpstreamReply:
        """Send a request that is not streamed; `UpstreamError` where it was not answered.

        `path` is what the shape adds to the base URL; `headers` are the client's that pass.
        """
        ...

    def stream(
        self, provider: Provider, path: str, body: JsonObject, headers: Mapping[str, str]
    ) -> AsyncGenerator[ServerEvent, None]:
        """Send a streamed request and yield its events, `[DONE]` left out, until it ends.

        `UpstreamError` before the first event where it was refused, later where the connection
        broke. Closing the iterator closes the connection.
        """
        ...

    async def models(self, provider: Provider) -> tuple[str, ...]:
        """Return the names of the models that the provider lists; `UpstreamError` if none."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


class ReceiptStore(Protocol):
    """Every request's receipt, read back; `Books` writes them."""

    async def get(self, request_id: RequestId) -> Receipt | None:
        """Return a receipt; None where there is none."""
        ...

    async def of_session(self, session: SessionId, *, key: str) -> Sequence[Receipt]:
        """Return a session's receipts of one key, oldest first."""
        ...


class Books(Protocol):
    """What each request may use and did, exact under concurrency and across processes."""

    async def open(self, charges: Sequence[Charge], worst: Micros) -> Reservation:
        """Count a request on every charge and reserve its worst-case cost there, or refuse.

        All or nothing, in one transaction: a request that one charge refuses counts on none, and
        neither does one whose caller is cancelled while it waits.
        """
        ...

    async def close(self, closing: Closing) -> None:
        """Write all that a request leaves behind, durably and in one transaction.

        The reservation becomes what the request cost. `StoreError` where it has a receipt.
        It is written even where the caller is cancelled while it waits.
        """
        ...

    async def finish(self) -> None:
        """Wait for what is being done for callers that were cancelled."""
        ...

    async def totals(self, scope: str, name: str, *, kind: ChargeKind = "session") -> SessionTotals:
        """Return what a session, or another thing that is charged, has used."""
        ...

    def left(self, charges: Sequence[Charge]) -> Micros | None:
        """Return the least that is left to spend, as far as this process has seen; no waiting.

        None where nothing caps it, or where nothing was seen yet.
        """
        ...


class ResponseStore(Protocol):
    """Responses that a later request may continue; `Books` writes them."""

    async def get(self, scope: str, wanted: RequestId) -> StoredResponse | None:
        """Return a response; None where the scope has none of that id."""
        ...

    async def delete(self, scope: str, wanted: RequestId) -> bool:
        """Forget a response; False where the scope has none of that id."""
        ...


class ReplyStore(Protocol):
    """Idempotency keys: who serves each, and what was answered; `Books` writes the answers."""

    async def claim(self, wanted: KeptReply, now: datetime) -> Standing:
        """Claim a key for `wanted.holder` until `wanted.until`, unless it is taken."""
        ...

    async def renew(self, claims: Sequence[KeptReply]) -> None:
        """Hold claims until their new `until`; those that lapsed and were taken stay taken."""
        ...

    async def free(self, claim: KeptReply) -> None:
        """Give up a claim; an answer that is kept stays."""
        ...


class KeyStore(Protocol):
    """The keys that callers are known by, without the keys themselves."""

    async def revision(self) -> int:
        """Return a number that grows with every change; 0 where there never was a key."""
        ...

    async def all(self) -> Sequence[KeyEntry]:
        """Return every key, revoked ones too, by name."""
        ...

    async def add(self, entry: KeyEntry) -> None:
        """Keep a new key; `ConflictError` where there is or was one of its name."""
        ...

    async def put(self, record: KeyRecord) -> None:
        """Change what a key may do; `NotFoundError` where there is none of that name."""
        ...


class AffinityStore(Protocol):
    """Which model made each tool call, and what it thought; `Books` writes it."""

    async def holder(self, scope: str, calls: Sequence[ToolCallId]) -> Holder | None:
        """Return the model that made the first known of these calls; None where none is known."""
        ...

    async def reasoning(self, scope: str, calls: Sequence[ToolCallId]) -> Mapping[ToolCallId, str]:
        """Return what the model thought before each of these calls, where that was kept."""
        ...


class Policies(Protocol):
    """The policies in force."""

    def govern(self, caller: Caller, request: InferenceRequest) -> tuple[Policy, InferenceRequest]:
        """Return the policy of a request, and the request with the alias of its model resolved.

        No waiting, no I/O; the errors of `resolve`.
        """
        ...

    def resolve(self, caller: Caller, ask: RoutingAsk) -> Policy:
        """Return the policy of a request, narrowed as it asks; no waiting, no I/O.

        `GatewayError`: 403 for one that the caller's key is not granted, 404 for one that is not.
        """
        ...


class ProbeStore(Protocol):
    """What probes showed, kept between runs."""

    async def put(self, key: str, text: str) -> None:
        """Keep a probe's result as JSON under the hash of endpoint and model."""
        ...

    async def get(self, key: str) -> str | None:
        """Return the result kept under a key; None where there is none."""
        ...


class EvidenceStore(Protocol):
    """What answers and evaluations showed, kept between processes."""

    async def rates(self, keys: Collection[str]) -> Mapping[str, Rates]:
        """Return what is kept of these deployments; those of which nothing is are left out."""
        ...

    async def merge_rates(self, seen: Mapping[str, Sequence[Observation]]) -> Mapping[str, Rates]:
        """Add observations to what is kept, and return what is kept of these deployments now."""
        ...

    async def qualities(self) -> Sequence[QualityResult]:
        """Return what counts of the evaluations that are applied."""
        ...


class Noticing(Protocol):
    """Whoever wants to know what happens at the gateway."""

    def saw(self, receipt: Receipt) -> None:
        """Be told of a receipt that was written; returns at once."""
        ...


class ProviderKeys(Protocol):
    """The keys that a policy uses in place of the catalog's."""

    def of(self, policy: Policy) -> Mapping[ProviderName, str]:
        """Return them by provider."""
        ...

    def unset(self, policy: Policy) -> Mapping[ProviderName, str]:
        """Return the variables that the policy names and that are not set, by provider."""
        ...
