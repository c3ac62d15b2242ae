"""Spans, as a collector gets them."""

import asyncio
import time
from datetime import UTC, datetime, timedelta

from tests.unit.runs.observe.records import RUN, whole
from tests.unit.web.observe.collector import Collector, attributes

from turnout.core.observe.spans import Span
from turnout.runs.observe.timeline import spans_of
from turnout.web.observe.otlp import OtlpSpans

GIVEN_UP = 10.0
"""Seconds after which the exporter gives an answer up: who waited for one would wait as long."""


async def test_a_collector_gets_every_span_as_it_is() -> None:
    """Ids, times, kinds, attributes and errors; who sends, in the headers and the resource."""
    told = spans_of(RUN, whole())
    async with Collector() as collector:
        spans = OtlpSpans(collector.options, "1.2")
        spans.take(told)
        await spans.close()
    (request,) = collector.got
    (of_resource,) = request.resource_spans
    resource = attributes(of_resource.resource.attributes)
    assert resource == {"service.name": "turnout-test", "service.version": "1.2"}
    assert collector.headers[0]["x-team"] == "blue"
    got = {span.span_id.hex(): span for scope in of_resource.scope_spans for span in scope.spans}
    assert len(got) == len(told)
    kinds = {"internal": 1, "server": 2, "client": 3}
    for span in told:
        sent = got[span.span_id]
        assert (sent.trace_id.hex(), sent.parent_span_id.hex()) == (span.trace_id, span.parent_id)
        assert (sent.name, sent.kind) == (span.name, kinds[span.kind])
        assert sent.start_time_unix_nano == round(span.start.timestamp() * 1e9)
        assert sent.end_time_unix_nano == round(span.end.timestamp() * 1e9)
        error = {"error.type": span.error} if span.error else {}
        assert attributes(sent.attributes) == {**span.attributes, **error}
        assert sent.status.code == (2 if span.error else 0)


async def test_half_a_character_keeps_nothing_from_being_sent() -> None:
    """Names of tools and models are what somebody else has written."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    odd = {"gen_ai.tool.name": "a\udcff", "gen_ai.response.finish_reasons": ("\ud800",)}
    span = Span("a" * 32, "b" * 16, "", "x\udcff", "internal", now, now, odd, "y\udcff")
    async with Collector() as collector:
        spans = OtlpSpans(collector.options, "1.2")
        spans.take([span])
        await spans.close()
    (sent,) = collector.spans
    assert sent.name == "x?"
    assert attributes(sent.attributes) == {
        "gen_ai.tool.name": "a?",
        "gen_ai.response.finish_reasons": ("?",),
        "error.type": "y?",
    }


async def test_a_collector_that_never_answers_holds_nobody_up() -> None:
    """Neither the work nor, for longer than its last seconds, the end of the process."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    one = Span("a" * 32, "b" * 16, "", "run", "internal", now, now + timedelta(seconds=1))
    async with Collector(silent=True) as collector:
        spans = OtlpSpans(collector.options, "1.2", last_seconds=0.3)
        began = time.monotonic()
        spans.take([one] * 3_000)
        assert time.monotonic() - began < GIVEN_UP
        async with asyncio.timeout(10.0):
            await spans.close()
