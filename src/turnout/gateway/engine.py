"""The one way through the gateway: admission, decision, serving, receipt."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from turnout.core.clock import Clock
from turnout.core.govern.closing import Charge
from turnout.core.ids import DeploymentId, RequestId
from turnout.core.inference import RoutingAsk, RoutingReport
from turnout.core.money import Micros
from turnout.core.policies import Policy
from turnout.core.receipts import Decision, Receipt
from turnout.errors import GatewayError
from turnout.gateway.catalog import Catalog
from turnout.gateway.decide import Decider, none_eligible
from turnout.gateway.decide.pool import outside
from turnout.gateway.dialog.conversation import Shape
from turnout.gateway.dialog.events import Ending
from turnout.gateway.evidence import Sight
from turnout.gateway.exchange import (
    Caller,
    Completion,
    InferenceRequest,
    StreamDelta,
    StreamEnd,
)
from turnout.gateway.measure.live import LiveEvidence
from turnout.gateway.measure.warm import WarmCaches
from turnout.gateway.observe.spans import request_span
from turnout.gateway.policy.book import govern_under
from turnout.gateway.ports import (
    Holder,
    Noticing,
    Policies,
    ProviderKeys,
)
from turnout.gateway.stages.admission import (
    charges_for,
    check_names,
    refusal,
    spend_is_capped,
    worst_case,
)
from turnout.gateway.stages.affinity import find_holder, recall_thoughts, scope_of
from turnout.gateway.stages.attempts.fallback import try_order
from turnout.gateway.stages.connected import Serves
from turnout.gateway.stages.counting import Counting
from turnout.gateway.stages.recording import EngineStores, Record, Recorder, Strangers
from turnout.gateway.stages.replay import stream_of
from turnout.gateway.stages.stored import continued
from turnout.gateway.stages.trail import Trail
from turnout.gateway.tool_rules import judge_request, refuse_tools

__all__ = ["Engine", "EngineParts", "Measures", "StreamPart"]

StreamPart = StreamDelta | StreamEnd


@dataclass(frozen=True, slots=True)
class Measures:
    """What is known of deployments from watching them."""

    evidence: LiveEvidence
    warm: WarmCaches


@dataclass(frozen=True, slots=True)
class EngineParts:
    """All that an engine works with."""

    policies: Policies
    catalog: Catalog
    serving: Serves
    counting: Counting
    stores: EngineStores
    measures: Measures
    noticing: Noticing
    provider_keys: ProviderKeys
    clock: Clock
    propagate: bool = False
    """Whether providers are told which trace a request belongs to."""


class Engine:
    """Serves requests under the policies in force and one catalog."""

    def __init__(self, parts: EngineParts) -> None:
        self._parts = parts
        self._clock = parts.clock
        self._decider = Decider(parts.catalog)
        warm = parts.measures.warm
        self._recorder = Recorder(parts.stores, warm, parts.noticing, parts.clock)
        self._strangers = Strangers()
        self._restores = any(d.reasoning_back for d in parts.catalog.deployments)

    @property
    def writable(self) -> bool:
        """Whether receipts can be written; while they cannot, no model is asked."""
        return self._recorder.writable

    async def complete(
        self, caller: Caller, request: InferenceRequest, request_id: RequestId
    ) -> Completion:
        """Serve a request whole; its receipt is written when this returns or raises.

        `GatewayError`, or `UpstreamError` where the client is to read the upstream's own words.
        """
        trail = self._begin(caller, request, request_id)
        async with self._recorder.recorded(trail) as record:
            if record.replay is not None:
                return record.replay
            order = await self._route(trail)
            answer = await self._parts.serving.whole(trail, order)
            done = Completion(answer.reply, answer.native, trail.total_usage, _report(trail))
            trail.ends("ok", 200, None)
            record.completion = done
        return done

    async def stream(
        self, caller: Caller, request: InferenceRequest, request_id: RequestId
    ) -> AsyncGenerator[StreamPart, None]:
        """Serve a request piece by piece; its receipt is written before the `StreamEnd`.

        The errors of `complete`, before the first piece or after it. Closing the iterator ends
        the request as cancelled.
        """
        trail = self._begin(caller, request, request_id)
        end: StreamEnd | None = None
        async with self._recorder.recorded(trail) as record:
            if record.replay is not None:
                pieces, end = stream_of(record.replay)
                for piece in pieces:
                    yield piece
            else:
                async with aclosing(self._pieces(trail, record)) as parts:
                    async for part in parts:
                        if isinstance(part, StreamEnd):
                            end = part
                        else:
                            yield part
        if end is None:
            raise _unserved()
        yield end

    async def _pieces(self, trail: Trail, record: Record) -> AsyncGenerator[StreamPart, None]:
        order = await self._route(trail)
        ending: Ending | None = None
        async with aclosing(self._parts.serving.stream(trail, order)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Ending):
                    ending = piece
                elif trail.serving is not None:
                    yield StreamDelta(piece, trail.serving.model)
        if ending is None or trail.reply is None:
            raise _unserved()
        trail.ends("ok", 200, None)
        end = StreamEnd(ending, trail.total_usage, _report(trail))
        record.completion = Completion(trail.reply, None, end.usage, end.report)
        yield end

    async def count_tokens(self, caller: Caller, request: InferenceRequest, id_: RequestId) -> int:
        """Return how many tokens the request is, as the deployment that would serve it counts."""
        trail = self._begin(caller, request, id_)
        trail.operation = "count_tokens"
        async with self._recorder.recorded(trail):
            judged = await self._judge(trail)
            # It is no model call of its session, though a request of its key.
            of_key = tuple(charge for charge in judged.charges if charge.kind != "session")
            await self._admit(trail, of_key, Micros(0))
            if not judged.decision.order:
                raise none_eligible(judged.decision, judged.sight)
            counted = await self._parts.counting.count(
                trail.request, judged.decision.order, trail.provider_keys
            )
            trail.ends("ok", 200, None)
        return counted

    async def explain(
        self, caller: Caller, request: InferenceRequest, draft: Policy | None = None
    ) -> Decision:
        """Return the decision that a request would get, under a draft policy where one is given.

        No model is called and nothing is counted. `GatewayError` where it would be refused.
        """
        trail = self._begin(caller, request, RequestId(""))
        return (await self._judge(trail, draft)).decision

    def model_names(self, caller: Caller) -> tuple[str, ...]:
        """Return what a request of that caller may name as its model, `auto` first."""
        policy = self._parts.policies.resolve(caller, RoutingAsk())
        catalog = self._parts.catalog
        models = [
            d.model
            for d in catalog.deployments
            if outside(policy.pool, d, catalog.providers.get(d.provider)) is None
        ]
        aliases = [a.name for a in policy.aliases if "*" not in a.name]
        return ("auto", *dict.fromkeys([*models, *aliases]))

    async def receipt(self, caller: Caller, request_id: RequestId) -> Receipt | None:
        """Return the receipt of a request of the same key, any for an admin; None: none."""
        found = await self._parts.stores.receipts.get(request_id)
        return found if found is not None and (found.key == caller.key or caller.admin) else None

    async def turned_away(
        self, request_id: RequestId, caller: Caller | None, shape: Shape, error: GatewayError
    ) -> None:
        """Write the receipt of a request that was refused before it could be read.

        Of callers that nobody knows a few hundred a minute are written down: they must not be
        able to fill the disk.
        """
        if caller is None and not self._strangers.admit(self._clock.monotonic()):
            return
        unread = replace(_UNREAD, shape=shape)
        trail = self._begin(caller or Caller(""), unread, request_id)
        trail.fails(error)
        await self._recorder.settle(trail, Record())

    async def close(self) -> None:
        """Wait for the receipts of requests that were cut off, and give up claims."""
        await self._recorder.close()
        await self._parts.stores.replays.close()

    def _begin(self, caller: Caller, request: InferenceRequest, request_id: RequestId) -> Trail:
        now = self._clock.now()
        onward = request_span(request_id, request.trace) if self._parts.propagate else None
        began = self._clock.monotonic()
        return Trail(request_id, caller, request, now, began, request.model, onward)

    async def _route(self, trail: Trail) -> Sequence[DeploymentId]:
        """Admit the request and return whom to ask, first choice first."""
        policy, decision, sight, charges = await self._judge(trail)
        request, catalog = trail.request, self._parts.catalog

        def decided(asked: InferenceRequest) -> Decision:
            return self._decider.decide(asked, policy, sight)

        order = try_order(request, decision, sight, policy.pinned, catalog, decided)
        if charges:
            worst = worst_case(request, [d for d in catalog.deployments if d.id in order])
            await self._admit(trail, charges, worst)
        if not order:
            raise none_eligible(decision, sight)
        return order

    async def _admit(self, trail: Trail, charges: tuple[Charge, ...], worst: Micros) -> None:
        """Count the request and reserve its worst case; `GatewayError` (402, 429) over a cap."""
        if not charges:
            return
        place = await self._parts.stores.books.open(charges, worst)
        if not place.granted:
            raise refusal(place, charges, trail.at)
        trail.charges, trail.worst = charges, worst

    async def _judge(self, trail: Trail, draft: Policy | None = None) -> "_Judged":
        """Apply policy and evidence to the request on the trail."""
        parts, caller = self._parts, trail.caller
        if draft is None:
            policy, request = parts.policies.govern(caller, trail.request)
        else:
            policy, request = govern_under(draft, trail.request)
        trail.policy, trail.request = policy, request
        request, owner = await continued(parts.stores.responses, caller, request)
        judgement = judge_request(policy.tools, request)
        trail.outside = judgement.outside
        refuse_tools(judgement)
        check_names(request, parts.catalog)
        if not policy.caching:
            request = replace(request, caching=False)
        held = await find_holder(parts.stores.affinity, caller, request) or owner
        if self._restores and request.past_calls:
            request = await recall_thoughts(parts.stores.affinity, caller, request)
        trail.request = request
        trail.provider_keys = parts.provider_keys.of(policy)
        charges = charges_for(caller, request, policy, trail.at)
        sight = self._sight(trail, policy, held, charges)
        decision = trail.decision = self._decider.decide(request, policy, sight)
        return _Judged(policy, decision, sight, charges)

    def _sight(
        self, trail: Trail, policy: Policy, held: Holder | None, charges: tuple[Charge, ...]
    ) -> Sight:
        measures, request = self._parts.measures, trail.request
        warm: frozenset[DeploymentId] = frozenset()
        if request.caching and request.session is not None:
            warm = measures.warm.of(scope_of(trail.caller, request.session))
        return Sight(
            evidence=measures.evidence.snapshot(),
            ailing=measures.evidence.circuits.ailing(),
            held=held,
            warm=warm,
            budget=self._parts.stores.books.left(charges) if charges else None,
            spend_capped=spend_is_capped(charges),
            unset_keys=self._parts.provider_keys.unset(policy),
        )


_UNREAD: Final = InferenceRequest(
    body={},
    model="",
    stream=False,
    include_usage=False,
    tools=(),
    tool_choice="auto",
    max_tokens=None,
    open_calls=(),
    ask=RoutingAsk(),
    session=None,
    input_tokens_estimate=0,
    wants_json_schema=False,
    thinking=None,
    call_kind=None,
)


class _Judged(NamedTuple):
    """A request under policy and evidence."""

    policy: Policy
    decision: Decision
    sight: Sight
    charges: tuple[Charge, ...]
    """What it is to count on."""


def _report(trail: Trail) -> RoutingReport:
    report = trail.report()
    if report is None:
        raise _unserved()
    return report


def _unserved() -> GatewayError:
    return GatewayError("Nobody served the request.", status=500, code="internal_error")
