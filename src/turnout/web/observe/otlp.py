"""Spans, sent as OTLP over HTTP by OpenTelemetry's own SDK: the extra `otel`."""

import asyncio
import threading
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from turnout.core.observe.options import ObserveOptions
from turnout.core.observe.spans import Attribute, Span

__all__ = ["OtlpSpans"]

_KINDS: Final = {
    "internal": SpanKind.INTERNAL,
    "client": SpanKind.CLIENT,
    "server": SpanKind.SERVER,
}
_EPOCH: Final = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_MICROSECOND: Final = timedelta(microseconds=1)
_LONGEST_ATTRIBUTE: Final = 32_000
"""Characters."""
_LAST_SECONDS: Final = 5.0
"""For what waits to be sent when the process is to end."""


class OtlpSpans:
    """Sends spans from a thread of its own; while nobody takes them, the oldest are dropped."""

    def __init__(
        self, options: ObserveOptions, version: str, *, last_seconds: float = _LAST_SECONDS
    ) -> None:
        """Send them to where the options say; at the end for `last_seconds` more, at most."""
        self._last_seconds = last_seconds
        self._exporter: SpanExporter = OTLPSpanExporter(
            endpoint=options.traces_url, headers=dict(options.traces_headers)
        )
        self._ids = _Ids()
        self._provider = TracerProvider(
            sampler=ALWAYS_ON,
            resource=Resource({"service.version": version, **options.resource}),
            shutdown_on_exit=False,
            id_generator=self._ids,
            span_limits=SpanLimits(max_attribute_length=_LONGEST_ATTRIBUTE),
        )
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))
        self._tracer = self._provider.get_tracer("turnout", version)

    def take(self, spans: Sequence[Span]) -> None:
        """Have spans sent; returns at once."""
        for span in spans:
            self._ids.next = span
            started = self._tracer.start_span(
                _sendable(span.name),
                context=_above(span),
                kind=_KINDS[span.kind],
                attributes={name: _attribute(value) for name, value in span.attributes.items()},
                start_time=_nanoseconds(span.start),
            )
            if span.error:
                started.set_attribute("error.type", _sendable(span.error))
                started.set_status(Status(StatusCode.ERROR))
            started.end(_nanoseconds(span.end))

    async def close(self) -> None:
        """Send what waits, as far as there is time."""
        loop, sent = asyncio.get_running_loop(), asyncio.Event()

        provider: Any = self._provider

        def shut_down() -> None:
            provider.shutdown()
            if not loop.is_closed():
                loop.call_soon_threadsafe(sent.set)

        # Not a thread of the loop's own: those are waited for, however long a collector is silent.
        threading.Thread(target=shut_down, name="last-spans", daemon=True).start()
        try:
            async with asyncio.timeout(self._last_seconds):
                await sent.wait()
        except TimeoutError:
            self._exporter.shutdown()


class _Ids(IdGenerator):
    """Gives each span the ids that it has already."""

    next: Span

    def generate_span_id(self) -> int:
        return int(self.next.span_id, 16)

    def generate_trace_id(self) -> int:
        return int(self.next.trace_id, 16)


def _above(span: Span) -> Context:
    """Return the context that a span is started in: that of the span above it."""
    if not span.parent_id:
        return Context()
    sampled = TraceFlags(TraceFlags.SAMPLED)
    trace, above = int(span.trace_id, 16), int(span.parent_id, 16)
    context = SpanContext(trace, above, is_remote=False, trace_flags=sampled)
    return set_span_in_context(NonRecordingSpan(context), Context())


def _attribute(value: Attribute) -> Attribute:
    if isinstance(value, str):
        return _sendable(value)
    return tuple(map(_sendable, value)) if isinstance(value, tuple) else value


def _sendable(text: str) -> str:
    """Return text without halves of characters, for which nothing of its batch would be sent."""
    return text.encode(errors="replace").decode()


def _nanoseconds(at: datetime) -> int:
    return (at - _EPOCH) // _MICROSECOND * 1_000
