"""What is known of one request so far; at its end, its receipt."""

from dataclasses import dataclass, field
from datetime import datetime

from turnout.core.ids import RequestId, ToolCallId
from turnout.core.inference import RoutingReport
from turnout.core.money import Micros, cost_micros
from turnout.core.receipts import Attempt, Decision, Receipt, ReceiptStatus
from turnout.core.usage import Usage
from turnout.errors import GatewayError, TurnoutError
from turnout.gateway.catalog import Deployment
from turnout.gateway.exchange import Caller, InferenceRequest, UpstreamError
from turnout.gateway.wire.errors import error_code

__all__ = ["Trail"]


@dataclass(slots=True)
class Trail:
    """Facts in the order in which the stages learn them."""

    request_id: RequestId
    caller: Caller
    request: InferenceRequest
    at: datetime
    began: float
    """Monotonic seconds."""
    decision: Decision | None = None
    outside: tuple[str, ...] = ()
    reserved: bool = False
    """Whether the session's ledger awaits the cost."""
    attempts: list[Attempt] = field(default_factory=list)
    serving: Deployment | None = None
    """Whoever is being asked now, then whoever answered; None where nobody was or did."""
    fallback: bool = False
    usage: Usage = field(default_factory=Usage)
    ttft_ms: int | None = None
    calls: tuple[ToolCallId, ...] = ()
    tools_called: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()
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
    def cost(self) -> Micros | None:
        """What was used, priced; None where the price is unknown, 0 where nobody served."""
        if self.serving is None:
            return Micros(0)
        price = self.serving.price
        return None if price is None else cost_micros(self.usage, price)

    def report(self) -> RoutingReport | None:
        """Return which deployment serves and why; None where none does."""
        decision, serving = self.decision, self.serving
        if decision is None or serving is None:
            return None
        first = decision.order[0]
        reason = decision.reason
        if self.fallback:
            reason = f"{serving.id}: stands in for {first}, which failed. {reason}"
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
        )

    def receipt(self, ended: float) -> Receipt:
        """Return the receipt of a request that ended at `ended`, in monotonic seconds."""
        request = self.request
        return Receipt(
            request_id=self.request_id,
            at=self.at,
            session=request.session,
            key=self.caller.key,
            status=self.status,
            http_status=self.http_status,
            error_code=self.error_code,
            asked_model=request.model,
            call_kind=request.call_kind,
            decision=self.decision,
            routing=self.report(),
            attempts=tuple(self.attempts),
            usage=self.usage,
            cost_micros=self.cost,
            latency_ms=round((ended - self.began) * 1000),
            ttft_ms=self.ttft_ms,
            tools_declared=_names(request),
            tools_called=self.tools_called,
            tools_outside=self.outside,
            repairs=self.repairs,
        )


def _names(request: InferenceRequest) -> tuple[str, ...]:
    return tuple(tool.name for tool in request.tools)
