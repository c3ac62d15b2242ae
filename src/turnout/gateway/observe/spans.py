"""A receipt as a span: the gateway's part of whoever's trace asked it."""

from datetime import timedelta
from typing import Final

from turnout.core.ids import RequestId
from turnout.core.observe.spans import (
    Attribute,
    Span,
    TraceParent,
    parse_traceparent,
    span_id_of,
    trace_id_of,
)
from turnout.core.receipts import Receipt

__all__ = ["request_span", "span_of"]

_LONGEST_MS: Final = 10**9
_LONGEST: Final = 200
"""Characters of what a client has chosen freely."""


def request_span(request_id: RequestId, above: TraceParent | None) -> TraceParent:
    """Return where a request is: in the trace of who sent it, else in one of its own."""
    trace = trace_id_of(request_id) if above is None else above.trace_id
    return TraceParent(trace, span_id_of(request_id, ""))


def span_of(receipt: Receipt) -> Span:
    """Return a request's span; nothing of what was said is in it."""
    above = parse_traceparent(receipt.traceparent)
    own = request_span(receipt.request_id, above)
    operation = "chat" if receipt.operation == "answer" else receipt.operation
    model = receipt.model or receipt.asked_model[:_LONGEST]
    attributes: dict[str, Attribute] = {
        "gen_ai.operation.name": operation,
        "gen_ai.request.model": receipt.asked_model[:_LONGEST],
        "http.response.status_code": receipt.http_status,
        "turnout.request.id": receipt.request_id,
        "turnout.status": receipt.status,
        "turnout.key": receipt.key,
        "turnout.project": receipt.project,
        "turnout.attempts": len(receipt.attempts),
        **_said(receipt),
    }
    start, end = receipt.at, receipt.at + _lasting(receipt.latency_ms)
    above_id = "" if above is None else above.span_id
    error = "" if receipt.status == "ok" else receipt.error_code or receipt.status
    return Span(
        *own, above_id, f"{operation} {model}".strip(), "server", start, end, attributes, error
    )


def _lasting(latency_ms: int) -> timedelta:
    return timedelta(milliseconds=min(max(0, latency_ms), _LONGEST_MS))


def _said(receipt: Receipt) -> dict[str, Attribute]:
    """Return what only some receipts say."""
    said: dict[str, Attribute] = {}
    if receipt.session is not None:
        said["gen_ai.conversation.id"] = receipt.session[:_LONGEST]
    if receipt.policy:
        said["turnout.policy"] = receipt.policy
    if receipt.call_kind is not None:
        said["turnout.step.kind"] = receipt.call_kind
    if receipt.replay_of is not None:
        said["turnout.replay_of"] = receipt.replay_of
    if receipt.ttft_ms is not None:
        said["gen_ai.response.time_to_first_chunk"] = receipt.ttft_ms / 1000
    routing = receipt.routing
    if routing is None:
        return said
    said |= {
        "gen_ai.provider.name": routing.provider,
        "gen_ai.response.model": routing.model,
        "gen_ai.usage.input_tokens": receipt.usage.input_tokens,
        "gen_ai.usage.output_tokens": receipt.usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": receipt.usage.cache_read_input_tokens,
        "gen_ai.usage.cache_creation.input_tokens": receipt.usage.cache_creation_input_tokens,
        "turnout.deployment": routing.deployment,
        "turnout.objective": routing.objective,
        "turnout.fallback": routing.fallback,
    }
    if receipt.cost_micros is not None:
        said["turnout.cost_micros"] = receipt.cost_micros
    return said
