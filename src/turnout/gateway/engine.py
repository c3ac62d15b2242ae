"""The one way through the gateway: admission, decision, serving, receipt."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

from turnout.core.clock import Clock
from turnout.core.ids import DeploymentId, RequestId
from turnout.core.inference import RoutingReport
from turnout.core.money import Micros
from turnout.core.policies import Policy, SessionCaps
from turnout.core.receipts import Decision, Receipt
from turnout.errors import GatewayError, TurnoutError
from turnout.gateway.catalog import Catalog
from turnout.gateway.decide import decide, mend_of
from turnout.gateway.exchange import (
    Caller,
    Completion,
    InferenceRequest,
    StreamDelta,
    StreamEnd,
    UpstreamError,
)
from turnout.gateway.measure.live import LiveEvidence
from turnout.gateway.ports import AffinityStore, ReceiptStore, SessionLedger, Upstream
from turnout.gateway.stages.admission import (
    check_names,
    check_tools,
    release,
    reserve,
    worst_case,
)
from turnout.gateway.stages.affinity import find_holder, remember_calls
from turnout.gateway.stages.fallback import Limits, try_order
from turnout.gateway.stages.serving import Serving, StreamFinish
from turnout.gateway.stages.trail import Trail
from turnout.gateway.tool_rules import judge

__all__ = ["Engine", "EngineStores", "StreamPart"]

StreamPart = StreamDelta | StreamEnd


@dataclass(frozen=True, slots=True)
class EngineStores:
    """Where the gateway keeps what must outlast a request."""

    receipts: ReceiptStore
    ledger: SessionLedger
    affinity: AffinityStore
    on_receipt: Callable[[Receipt], None] | None = None
    """Told of each receipt once it is written; it must not wait."""


class Engine:
    """Serves requests under one policy and one catalog."""

    def __init__(
        self,
        *,
        policy: Policy,
        catalog: Catalog,
        upstream: Upstream,
        evidence: LiveEvidence,
        stores: EngineStores,
        clock: Clock,
        limits: Limits | None = None,
    ) -> None:
        self._policy = policy
        self._catalog = catalog
        self._evidence = evidence
        self._stores = stores
        self._clock = clock
        self._serving = Serving(upstream, catalog, evidence, clock, limits or Limits())
        self._settling: set[asyncio.Task[None]] = set()

    async def complete(
        self, caller: Caller, request: InferenceRequest, request_id: RequestId
    ) -> Completion:
        """Serve a request whole; its receipt is written when this returns or raises.

        `GatewayError`, or `UpstreamError` where the client is to read the upstream's own words.
        """
        trail = self._begin(caller, request, request_id)
        async with self._recorded(trail):
            order = await self._route(trail)
            body = await self._serving.whole(trail, order)
            report = _report(trail)
            trail.ends("ok", 200, None)
        return Completion(body, trail.usage, report)

    async def stream(
        self, caller: Caller, request: InferenceRequest, request_id: RequestId
    ) -> AsyncGenerator[StreamPart, None]:
        """Serve a request piece by piece; its receipt is written before the `StreamEnd`.

        The errors of `complete`, before the first piece or after it. Closing the iterator ends
        the request as cancelled.
        """
        trail = self._begin(caller, request, request_id)
        finish = StreamFinish({}, None)
        async with self._recorded(trail):
            order = await self._route(trail)
            async with aclosing(self._serving.stream(trail, order)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, StreamFinish):
                        finish = piece
                    else:
                        yield StreamDelta(piece)
            report = _report(trail)
            trail.ends("ok", 200, None)
        yield StreamEnd(finish.chunk, trail.usage, finish.usage_body, report)

    def model_names(self) -> tuple[str, ...]:
        """Return what a request may name as its model, `auto` first."""
        pool = self._policy.pool.models
        known = (d.model for d in self._catalog.deployments if not pool or d.model in pool)
        return ("auto", *dict.fromkeys(known))

    async def receipt(self, caller: Caller, request_id: RequestId) -> Receipt | None:
        """Return the receipt of a request of the same key; None where there is none."""
        found = await self._stores.receipts.get(request_id)
        return found if found is not None and found.key == caller.key else None

    async def close(self) -> None:
        """Wait for the receipts of requests that were cut off."""
        if self._settling:
            await asyncio.wait(self._settling)

    def _begin(self, caller: Caller, request: InferenceRequest, request_id: RequestId) -> Trail:
        now = self._clock.now()
        return Trail(request_id, caller, request, now, self._clock.monotonic())

    async def _route(self, trail: Trail) -> Sequence[DeploymentId]:
        """Admit the request and return whom to ask, first choice first."""
        request, policy = trail.request, self._policy
        judgement = judge(policy.tools, [tool.name for tool in request.tools])
        trail.outside = judgement.outside
        check_tools(judgement)
        check_names(request, policy, self._catalog)
        held = await find_holder(self._stores.affinity, trail.caller, request)
        seen = self._evidence.snapshot()

        def decided(asked: InferenceRequest) -> Decision:
            return decide(asked, policy, self._catalog, seen, held)

        decision = trail.decision = decided(request)
        order = try_order(request, decision, held, policy.pinned, self._catalog, decided)
        await self._reserve(trail, order)
        if not order:
            raise _none_eligible(decision)
        return order

    async def _reserve(self, trail: Trail, order: Sequence[DeploymentId]) -> None:
        session, caps = trail.request.session, self._policy.session
        if session is None or caps == SessionCaps():
            return
        worst = worst_case(trail.request, [d for d in self._catalog.deployments if d.id in order])
        # Noted first: a client that goes away meanwhile must not leave a reservation open.
        trail.reserved = True
        try:
            await reserve(self._stores.ledger, trail.caller, session, trail.request_id, worst, caps)
        except GatewayError:
            trail.reserved = False
            raise

    @asynccontextmanager
    async def _recorded(self, trail: Trail) -> AsyncIterator[None]:
        """Note how the block ends, and write it down whatever happens."""
        try:
            yield
        except (TurnoutError, UpstreamError) as error:
            trail.fails(error)
            raise
        except (asyncio.CancelledError, GeneratorExit):
            trail.ends("cancelled", 499, "client_gone")
            raise
        finally:
            await self._settle(trail)

    async def _settle(self, trail: Trail) -> None:
        """Write the receipt and what goes with it; a cancellation does not stop the writing."""
        writing = asyncio.create_task(self._write(trail))
        self._settling.add(writing)
        writing.add_done_callback(self._settling.discard)
        await asyncio.shield(writing)

    async def _write(self, trail: Trail) -> None:
        stores, serving = self._stores, trail.serving
        receipt = trail.receipt(self._clock.monotonic())
        writes = [stores.receipts.add(receipt)]
        if trail.reserved:
            writes.append(release(stores.ledger, trail.request_id, trail.cost or Micros(0)))
        if trail.calls and serving is not None:
            session = trail.request.session
            writes.append(
                remember_calls(stores.affinity, trail.caller, session, trail.calls, serving)
            )
        # Together, so that a store may commit them at once.
        await asyncio.gather(*writes)
        if stores.on_receipt is not None:
            stores.on_receipt(receipt)


def _report(trail: Trail) -> RoutingReport:
    report = trail.report()
    if report is None:
        raise GatewayError("Nobody served the request.", status=500, code="internal_error")
    return report


def _none_eligible(decision: Decision) -> GatewayError:
    reasons = "; ".join(f"{c.deployment}: {c.dropped}" for c in decision.candidates)
    return GatewayError(
        f"No model of the catalog may serve this request: {reasons or 'the catalog is empty'}.",
        status=503,
        code="no_eligible_model",
        mend=mend_of(reasons) or "Change the request, the policy's pool, or the catalog.",
    )
