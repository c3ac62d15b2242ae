"""Receipts, as spans and as metrics."""

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given, settings
from tests.samples import values
from tests.unit.core.observe.test_metrics import read

from turnout.core.ids import DeploymentId, RequestId, RunId, SessionId
from turnout.core.money import Micros
from turnout.core.observe.metrics import Metrics
from turnout.core.observe.spans import run_span, trace_id_of
from turnout.core.receipts import Attempt, Receipt
from turnout.core.usage import Usage
from turnout.gateway.observe.counting import RequestMetrics
from turnout.gateway.observe.spans import request_span, span_of
from turnout.testing.exchange import REPORT

RECEIPT = Receipt(
    request_id=RequestId("req-1"),
    at=datetime(2026, 1, 1, tzinfo=UTC),
    session=SessionId("run-1"),
    key="team",
    status="ok",
    http_status=200,
    error_code=None,
    asked_model="auto",
    call_kind="act",
    decision=None,
    routing=REPORT,
    attempts=(
        Attempt(DeploymentId("p/broken"), 503, "It is down.", 5),
        Attempt(DeploymentId("p/m"), 200, None, 300),
    ),
    usage=Usage(100, 20, 40),
    cost_micros=Micros(1_500),
    latency_ms=320,
    ttft_ms=90,
    tools_declared=("run",),
    tools_called=("run",),
    policy="default",
)
MODEL = (("gen_ai_provider_name", "p"), ("gen_ai_response_model", "m"))
CHAT = ("gen_ai_operation_name", "chat")


def test_a_request_is_a_span_below_the_call_of_its_sender() -> None:
    """Where the sender said which; what it was and came to is on it, what was said is not."""
    call = run_span(RunId("run-1"), "run-1/2")
    span = span_of(replace(RECEIPT, traceparent=call.header()))
    assert (span.trace_id, span.parent_id) == (call.trace_id, call.span_id)
    assert (span.name, span.kind, span.seconds, span.error) == ("chat m", "server", 0.32, "")
    said = span.attributes
    assert (said["gen_ai.operation.name"], said["gen_ai.provider.name"]) == ("chat", "p")
    assert (said["gen_ai.request.model"], said["gen_ai.response.model"]) == ("auto", "m")
    assert (said["gen_ai.conversation.id"], said["turnout.request.id"]) == ("run-1", "req-1")
    assert (said["gen_ai.usage.input_tokens"], said["turnout.cost_micros"]) == (100, 1_500)
    assert (said["gen_ai.usage.cache_read.input_tokens"], said["turnout.attempts"]) == (40, 2)
    assert said["gen_ai.response.time_to_first_chunk"] == 0.09


def test_a_request_of_nobodys_trace_begins_its_own() -> None:
    """Providers that are told of it are told the same."""
    span = span_of(RECEIPT)
    assert (span.trace_id, span.parent_id) == (trace_id_of("req-1"), "")
    assert request_span(RequestId("req-1"), None) == (span.trace_id, span.span_id)


def test_a_refusal_is_a_span_with_its_code() -> None:
    """It has no model that answered."""
    refused = replace(
        RECEIPT, routing=None, status="refused", http_status=403, error_code="tool_not_allowed"
    )
    span = span_of(refused)
    assert (span.name, span.error) == ("chat auto", "tool_not_allowed")
    assert "gen_ai.response.model" not in span.attributes


def test_requests_are_counted_by_what_became_of_them() -> None:
    """Replays cost nothing, and say nothing of how fast a model is."""
    metrics = Metrics()
    counts = RequestMetrics(metrics)
    counts.saw(RECEIPT)
    counts.saw(replace(RECEIPT, replay_of=RequestId("req-0"), attempts=()))
    refused = {"routing": None, "status": "refused", "http_status": 429, "ttft_ms": None}
    counts.saw(replace(RECEIPT, error_code="rate_limited", attempts=(), **refused))
    found = read(metrics)
    ok = (("api", "chat"), ("http_status", "200"), ("status", "ok"))
    assert found[("turnout_gateway_requests_total", ok)] == 2
    assert found[("turnout_gateway_replays_total", ())] == 1
    assert found[("turnout_cost_usd_total", MODEL)] == 0.0015
    server = "gen_ai_server_request_duration_seconds_count"
    assert found[(server, (("error_type", ""), CHAT, *MODEL))] == 1
    nobody = (("gen_ai_provider_name", ""), ("gen_ai_response_model", ""))
    assert found[(server, (("error_type", "rate_limited"), CHAT, *nobody))] == 1
    tokens = (CHAT, *MODEL, ("gen_ai_token_type", "input"))
    assert found[("gen_ai_client_token_usage_sum", tokens)] == 100
    assert found[("gen_ai_server_time_to_first_token_seconds_sum", (CHAT, *MODEL))] == 0.09
    asked = "turnout_provider_attempts_total"
    assert found[(asked, (("deployment", "p/broken"), ("outcome", "failed")))] == 1
    assert found[(asked, (("deployment", "p/m"), ("outcome", "answered")))] == 1


@settings(max_examples=20, deadline=None)
@given(values(Receipt))
def test_no_receipt_is_too_odd_to_be_told(receipt: Receipt) -> None:
    """Whatever clients and providers made of it."""
    metrics = Metrics()
    RequestMetrics(metrics).saw(receipt)
    read(metrics)
    assert span_of(receipt).name
