"""Receipts, counted."""

from typing import Final

from turnout.core.observe.metrics import Metrics
from turnout.core.receipts import Receipt

__all__ = ["RequestMetrics"]

_TOKENS: Final = tuple(float(4**power) for power in range(14))
"""Upper bounds from 1 to 67 million, those of the GenAI conventions."""
_MICROS: Final = 1_000_000
_MODEL: Final = ("gen_ai_provider_name", "gen_ai_response_model")


class RequestMetrics:
    """Counts what went through the gateway; what clients choose freely is no label."""

    def __init__(self, metrics: Metrics) -> None:
        self._requests = metrics.counter(
            "turnout_gateway_requests_total",
            "Requests of models, by how they ended.",
            ("api", "status", "http_status"),
        )
        self._durations = metrics.histogram(
            "gen_ai_server_request_duration_seconds",
            "Time from a request of a model to its last byte, replays left out.",
            ("gen_ai_operation_name", *_MODEL, "error_type"),
        )
        self._first_tokens = metrics.histogram(
            "gen_ai_server_time_to_first_token_seconds",
            "Time from a streamed request to the first token.",
            ("gen_ai_operation_name", *_MODEL),
        )
        self._tokens = metrics.histogram(
            "gen_ai_client_token_usage",
            "Tokens of requests that a provider served.",
            ("gen_ai_operation_name", *_MODEL, "gen_ai_token_type"),
            bounds=_TOKENS,
        )
        self._cost = metrics.counter(
            "turnout_cost_usd_total", "What providers are owed, as far as prices are known.", _MODEL
        )
        self._attempts = metrics.counter(
            "turnout_provider_attempts_total",
            "Times that a deployment was asked.",
            ("deployment", "outcome"),
        )
        self._replays = metrics.counter(
            "turnout_gateway_replays_total", "Requests that got an answer which was kept."
        )

    def saw(self, receipt: Receipt) -> None:
        """Count a request."""
        self._requests.add(receipt.shape, receipt.status, str(receipt.http_status))
        for attempt in receipt.attempts:
            outcome = "answered" if attempt.error is None else "failed"
            self._attempts.add(attempt.deployment, outcome)
        if receipt.replay_of is not None:
            self._replays.add()
            return
        operation = "chat" if receipt.operation == "answer" else receipt.operation
        routing = receipt.routing
        model = ("", "") if routing is None else (routing.provider, routing.model)
        error = "" if receipt.status == "ok" else receipt.error_code or receipt.status
        self._durations.observe(receipt.latency_ms / 1000, operation, *model, error)
        if routing is None:
            return
        if receipt.ttft_ms is not None:
            self._first_tokens.observe(receipt.ttft_ms / 1000, operation, *model)
        self._tokens.observe(receipt.usage.input_tokens, operation, *model, "input")
        self._tokens.observe(receipt.usage.output_tokens, operation, *model, "output")
        if receipt.cost_micros:
            self._cost.add(*model, by=receipt.cost_micros / _MICROS)
