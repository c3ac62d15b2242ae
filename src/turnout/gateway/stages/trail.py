"""What is known of one request so far; at its end, its receipt."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from turnout.core.govern.closing import Charge
from turnout.core.ids import ProviderName, RequestId, ToolCallId
from turnout.core.inference import RoutingReport
from turnout.core.money import Micros, cost_micros
from turnout.core.observe.spans import TraceParent
from turnout.core.policies import Policy
from turnout.core.receipts import (
    Attempt,
    ConnectionCall,
    Decision,
    Operation,
    Receipt,
    ReceiptStatus,
)
from turnout.core.usage import Usage
from turnout.errors import GatewayError, TurnoutError
from turnout.gateway.catalog import Deployment
from turnout.gateway.dialog.events import Reply
from turnout.gateway.exchange import Caller, InferenceRequest, UpstreamError
from turnout.gateway.wire.errors import error_code

__all__ = ["Trail"]

_FREE: Final = Micros(0)


@dataclass(slots=True)
class Trail:
    """Facts in the order in which the stages learn them."""

    request_id: RequestId
    caller: Caller
    request: InferenceRequest
    at: datetime
    began: float
    """Monotonic seconds."""
    asked_model: str
    """As the client named it, before the policy's aliases."""
    onward: TraceParent | None = None
    """What providers are told of its trace; None: nothing."""
    operation: Operation = "answer"
    policy: Policy | None = None
    provider_keys: Mapping[ProviderName, str] = field(default_factory=dict, repr=False)
    """Keys of the policy, in place of the catalog's."""
    decision: Decision | None = None
    outside: tuple[str, ...] = ()
    charges: tuple[Charge, ...] = ()
    """What the request counts on."""
    worst: Micros = _FREE
    """What is reserved on each of them."""
    attempts: list[Attempt] = field(default_factory=list)
    serving: Deployment | None = None
    """Whoever is being asked now, then whoever answered; None where nobody was or did."""
    fallback: bool = False
    usage: Usage = field(default_factory=Usage)
    earlier_cost: Micros | None = _FREE
    """What earlier rounds of the same request cost; None where a price was unknown."""
    earlier_usage: Usage = field(default_factory=Usage)
    ttft_ms: int | None = None
    reply: Reply | None = None
    """The whole answer, once it is there."""
    calls: tuple[ToolCallId, ...] = ()
    tools_called: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()
    connection_calls: list[ConnectionCall] = field(default_factory=list)
    replay_of: RequestId | None = None
    """The request whose stored answer was given again."""
    status: ReceiptStatus = "failed"
    http_status: int = 500
    error_code: str | None = "internal_error"

    def ends(self, status: ReceiptStatus, http_status: int, error_code: str | None) -> None:
        """Note how the request ends."""
        self.status, self.http_status, self.error_code = status, http_status, error_code

    def fails(self, error: TurnoutError | UpstreamError) -> None:
        """Note the error that ends the request."""
        code = error_code(error)
        if self.ttft_ms is not None:
            self.ends("truncated", 200, code)
            return
        status = error.status if isinstance(error, GatewayError | UpstreamError) else 500
        refused = not self.attempts and (status or 500) < 500
        self.ends("refused" if refused else "failed", status or 502, code)

    @property
    def total_usage(self) -> Usage:
        """What was used, earlier rounds included."""
        return self.usage if self.earlier_usage == _NOTHING else self.earlier_usage + self.usage

    @property
    def cost(self) -> Micros | None:
        """What was used, priced; None where a price is unknown, 0 where nobody served."""
        if self.serving is None or self.earlier_cost is None:
            return self.earlier_cost
        price = self.serving.price
        return None if price is None else Micros(self.earlier_cost + cost_micros(self.usage, price))

    def next_round(self) -> None:
        """Note that the model is asked again within the same request."""
        self.earlier_usage, self.earlier_cost = self.total_usage, self.cost
        self.usage, self.serving, self.reply = Usage(), None, None

    def report(self) -> RoutingReport | None:
        """Return which deployment serves and why; None where none does."""
        decision, serving = self.decision, self.serving
        if decision is None or serving is None:
            return None
        reason = decision.reason
        if self.fallback:
            reason = f"{serving.id}: stands in for {decision.order[0]}, which failed. {reason}"
        return RoutingReport(
            model=serving.model,
            provider=serving.provider,
            deployment=serving.id,
            objective=decision.objective,
            task=decision.task,
            task_source=decision.task_source,
            session=self.request.session,
            sticky=decision.sticky,
            fallback=self.fallback,
            policy_revision=decision.policy_revision,
            reason=reason,
            cost_micros=self.cost,
            caches=serving.caching != "none",
            kept_warm=decision.kept_warm and not self.fallback,
            context_tokens=serving.context_window,
            connection_calls=tuple(call.full_name for call in self.connection_calls),
        )

    def receipt(self, ended: float) -> Receipt:
        """Return the receipt of a request that ended at `ended`, in monotonic seconds."""
        request, policy = self.request, self.policy
        named = request.ask.policy_name
        return Receipt(
            request_id=self.request_id,
            at=self.at,
            session=request.session,
            key=self.caller.key,
            status=self.status,
            http_status=self.http_status,
            error_code=self.error_code,
            asked_model=self.asked_model,
            call_kind=request.call_kind,
            decision=self.decision,
            routing=self.report(),
            attempts=tuple(self.attempts),
            usage=self.total_usage,
            cost_micros=self.cost,
            latency_ms=round((ended - self.began) * 1000),
            ttft_ms=self.ttft_ms,
            tools_declared=tuple([named(tool.name) for tool in request.tools]),
            tools_called=tuple(map(named, self.tools_called)),
            tools_outside=self.outside,
            repairs=self.repairs,
            project=self.caller.project,
            policy="" if policy is None else policy.name,
            policy_revision=None if policy is None else policy.revision,
            shape=request.shape,
            operation=self.operation,
            replay_of=self.replay_of,
            connection_calls=tuple(self.connection_calls),
            traceparent="" if request.trace is None else request.trace.header(),
        )

    def receipt_of_lost(self, lost: RequestId) -> Receipt:
        """Return the receipt of a request for the same whose gateway died before it wrote one."""
        return replace(
            self.receipt(self.began),
            request_id=lost,
            status="unknown",
            http_status=500,
            error_code="gateway_died",
            cost_micros=None,
        )


_NOTHING = Usage()
