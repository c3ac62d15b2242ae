"""Where a request belongs in its sender's trace, and who is told."""

import json

import pytest
from tests.unit.gateway.stages.test_serving import M, bench, trail_of

from turnout.core.observe.spans import TraceParent
from turnout.gateway.dialog.conversation import Shape
from turnout.gateway.wire.shapes import HEARD
from turnout.testing.model_server import Turn

WHERE = TraceParent("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")
HELLO = [{"role": "user", "content": "Hello"}]
BODIES: dict[Shape, dict[str, object]] = {
    "chat": {"model": "auto", "messages": HELLO},
    "messages": {"model": "auto", "messages": HELLO, "max_tokens": 10},
    "responses": {"model": "auto", "input": "Hello"},
}


@pytest.mark.parametrize("shape", list(BODIES))
@pytest.mark.parametrize(("header", "read"), [(WHERE.header(), WHERE), ("odd", None), (None, None)])
def test_every_api_takes_the_header_and_none_minds_an_odd_one(
    shape: Shape, header: str | None, read: TraceParent | None
) -> None:
    """It is never among what providers of the same API are sent as the client's own."""
    headers = {} if header is None else {"traceparent": header}
    asked = HEARD[shape].parse(json.dumps(BODIES[shape]).encode(), headers)
    assert asked.trace == read
    assert "traceparent" not in asked.headers


@pytest.mark.parametrize("onward", [None, WHERE])
async def test_providers_are_told_of_a_trace_only_where_that_is_wanted(
    onward: TraceParent | None,
) -> None:
    """Where it is, with the span that their call is part of."""
    trail = trail_of()
    trail.onward = onward
    async with bench({"m": [Turn("Hello.")]}) as on:
        await on.whole(trail, [M])
    (request,) = on.server.requests
    assert request.headers.get("traceparent") == (None if onward is None else onward.header())
