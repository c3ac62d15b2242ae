"""Streams through the gateway, and what becomes of them when the upstream fails."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import aiohttp
import orjson
import pytest

from turnout.core.money import Price
from turnout.gateway.app import AppLimits
from turnout.gateway.stages.attempts.fallback import Limits
from turnout.testing.exchange import deployment
from turnout.testing.gateway import GatewaySetup, RunningGateway, catalog_at, running_gateway
from turnout.testing.model_server import (
    Call,
    Fault,
    RecordedRequest,
    Refusal,
    ScriptedModelServer,
    Turn,
    refusing_base_url,
)

pytestmark = pytest.mark.faults

HELLO = [{"role": "user", "content": "Hello"}]
READ_FILE = {
    "type": "function",
    "function": {
        "name": "read_file",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    },
}
M = replace(deployment("p/m"), price=Price(input=1_000_000, output=2_000_000))
N = replace(deployment("p/n"), price=Price(input=9_000_000, output=9_000_000))
LONG = "one two three four five six seven eight nine ten"
CALLS = (Call("read_file", {"path": "a.py"}), Call("read_file", {"path": "b.py"}))
ONE_TRY = GatewaySetup(limits=Limits(attempts=1))


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    """Yield a client for the gateway."""
    async with aiohttp.ClientSession() as session:
        yield session


async def _stream(http: aiohttp.ClientSession, gateway: RunningGateway, **fields: Any) -> list[Any]:
    """Return the data of every event; status 200 is taken for granted."""
    body = {"model": "auto", "messages": HELLO, "stream": True, **fields}
    async with http.post(f"{gateway.base_url}/chat/completions", json=body) as answer:
        raw = await answer.read()
        assert answer.status == 200, raw
        assert answer.content_type == "text/event-stream"
    lines = [part.removeprefix(b"data: ") for part in raw.split(b"\n\n") if part[:1] == b"d"]
    return [line.decode() if line == b"[DONE]" else orjson.loads(line) for line in lines]


def _patience(answer: Turn | Refusal) -> float:
    """Return an idle time-out: short where the upstream is to fall silent, else out of the way."""
    stalls = isinstance(answer, Turn) and str(answer.fault).startswith("stall")
    return 0.5 if stalls else 10.0


async def _whole(
    http: aiohttp.ClientSession, gateway: RunningGateway, **fields: Any
) -> tuple[int, Any]:
    body = {"model": "auto", "messages": HELLO, **fields}
    async with http.post(f"{gateway.base_url}/chat/completions", json=body) as answer:
        return answer.status, await answer.json()


def _text(events: list[Any]) -> str:
    deltas = [c["delta"] for e in events if isinstance(e, dict) for c in e.get("choices", [])]
    return "".join(delta.get("content") or "" for delta in deltas)


def _calls(events: list[Any]) -> dict[int, str]:
    arguments: dict[int, str] = {}
    for event in events[:-1]:
        for choice in event.get("choices", []):
            for call in choice["delta"].get("tool_calls", []):
                at = call["index"]
                arguments[at] = arguments.get(at, "") + call["function"]["arguments"]
    return arguments


async def test_a_stream_ends_with_finish_report_and_done(http: aiohttp.ClientSession) -> None:
    """No usage chunk unless it was asked for; upstream it always is."""
    async with (
        ScriptedModelServer([Turn(LONG)] * 2) as server,
        running_gateway(catalog_at(server.base_url, M)) as gateway,
    ):
        events = await _stream(http, gateway)
        asked = await _stream(http, gateway, stream_options={"include_usage": True})
    assert _text(events) == LONG
    assert events[-1] == "[DONE]"
    assert events[-2]["choices"][0]["finish_reason"] == "stop"
    assert events[-2]["routing"]["cost_micros"] == 140
    assert not any("usage" in event for event in events[:-1])
    assert [e["usage"]["total_tokens"] for e in asked[:-1] if "usage" in e] == [120]
    assert all(request.wants_usage for request in server.requests)
    receipt = gateway.receipt()
    assert (receipt.status, receipt.cost_micros) == ("ok", 140)
    assert receipt.ttft_ms is not None
    assert {event["id"] for event in asked[:-1]} == {receipt.request_id}


@pytest.mark.cases
@pytest.mark.parametrize("fault", [None, "no_index", "zero_index"])
async def test_parallel_calls_come_apart_whatever_the_upstream_numbers(
    http: aiohttp.ClientSession, fault: Fault | None
) -> None:
    """Indices 0 and 1, each with valid JSON."""
    async with (
        ScriptedModelServer([Turn(calls=CALLS, fault=fault)]) as server,
        running_gateway(catalog_at(server.base_url, M)) as gateway,
    ):
        events = await _stream(http, gateway, tools=[READ_FILE])
    made = {at: orjson.loads(arguments) for at, arguments in _calls(events).items()}
    assert made == {0: {"path": "a.py"}, 1: {"path": "b.py"}}
    assert events[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert gateway.receipt().tools_called == ("read_file", "read_file")


async def test_calls_printed_in_the_text_are_streamed_as_calls(http: aiohttp.ClientSession) -> None:
    """Where the catalog says that a server does so."""
    async with (
        ScriptedModelServer([Turn(calls=CALLS[:1], fault="call_in_text")]) as server,
        running_gateway(catalog_at(server.base_url, replace(M, calls_in_text=True))) as gateway,
    ):
        events = await _stream(http, gateway, tools=[READ_FILE])
    assert orjson.loads(_calls(events)[0]) == {"path": "a.py"}
    assert _text(events) == ""
    assert "calls read from the text" in gateway.receipt().repairs


@pytest.mark.cases
@pytest.mark.parametrize("fault", ["no_done", "usage_twice"])
async def test_a_sloppy_end_is_still_an_end(http: aiohttp.ClientSession, fault: Fault) -> None:
    """One usage chunk, one `[DONE]`."""
    async with (
        ScriptedModelServer([Turn(LONG, fault=fault)]) as server,
        running_gateway(catalog_at(server.base_url, M)) as gateway,
    ):
        events = await _stream(http, gateway, stream_options={"include_usage": True})
    assert _text(events) == LONG
    assert sum("usage" in event for event in events[:-1]) == 1
    assert events.count("[DONE]") == 1


async def test_tokens_that_the_upstream_does_not_count_are_estimated(
    http: aiohttp.ClientSession,
) -> None:
    """And said to be an estimate."""
    async with (
        ScriptedModelServer([Turn(LONG, fault="no_usage")] * 2) as server,
        running_gateway(catalog_at(server.base_url, M)) as gateway,
    ):
        for call in (_stream, _whole):
            await call(http, gateway)
            usage = gateway.receipt().usage
            assert usage.estimated
            assert usage.output_tokens >= len(LONG) // 4


@pytest.mark.cases
@pytest.mark.parametrize("fault", ["cut", "error_in_band", "stall_midway", "bad_json"])
@pytest.mark.parametrize("turn", [Turn(LONG), Turn(calls=CALLS[:1])], ids=["text", "call"])
async def test_a_stream_that_breaks_off_says_so_and_is_not_finished(
    http: aiohttp.ClientSession, fault: Fault, turn: Turn
) -> None:
    """An error event, no finish reason, no `[DONE]`; the receipt says truncated."""
    broken = replace(turn, fault=fault)
    async with ScriptedModelServer(lambda _: broken) as server:
        catalog = catalog_at(server.base_url, M, N, idle_timeout=_patience(broken))
        async with running_gateway(catalog) as gateway:
            events = await _stream(http, gateway, tools=[READ_FILE])
    assert "error" in events[-1]
    finishes = [c["finish_reason"] for e in events for c in e.get("choices", [])]
    assert set(finishes) == {None}
    receipt = gateway.receipt()
    assert (receipt.status, receipt.http_status, len(receipt.attempts)) == ("truncated", 200, 1)
    assert receipt.usage.estimated
    assert receipt.cost_micros
    assert len(server.requests) == 1


_BEFORE_A_BYTE: list[Turn | Refusal] = [
    Turn("x", fault="reset"),
    Turn("x", fault="stall"),
    Turn("x", fault="html"),
    Refusal(500),
    Refusal(503),
    Refusal(429, headers={"Retry-After": "7"}),
    Refusal(401),
]


@pytest.mark.parametrize("first", _BEFORE_A_BYTE, ids=str)
@pytest.mark.parametrize("stream", [False, True])
async def test_the_next_deployment_answers_where_the_first_one_fails(
    http: aiohttp.ClientSession, first: Turn | Refusal, stream: bool
) -> None:
    """The client sees one answer; the receipt names both tries, and bills the one that answered."""
    script = {"m": lambda _: first, "n": [Turn(LONG)]}
    async with ScriptedModelServer(script) as server:
        catalog = catalog_at(server.base_url, M, N, idle_timeout=_patience(first))
        async with running_gateway(catalog) as gateway:
            if stream:
                events = await _stream(http, gateway)
                assert _text(events) == LONG
                report = events[-2]["routing"]
            else:
                status, body = await _whole(http, gateway)
                assert status == 200
                report = body["routing"]
    assert (report["model"], report["fallback"], report["cost_micros"]) == ("n", True, 1080)
    receipt = gateway.receipt()
    assert [attempt.deployment for attempt in receipt.attempts] == ["p/m", "p/n"]
    assert receipt.attempts[0].error
    assert receipt.cost_micros == 1080


@pytest.mark.parametrize(
    ("first", "status"),
    [
        (Turn("x", fault="reset"), 502),
        (Turn("x", fault="stall"), 504),
        (Turn("x", fault="html"), 502),
        (Turn("x", fault="bad_json"), 502),
        (Refusal(500), 502),
        (Refusal(503), 503),
        (Refusal(401), 502),
        (Refusal(422), 422),
        (Refusal(500, raw=b"<html>oops</html>"), 502),
    ],
    ids=str,
)
async def test_where_all_fail_the_client_reads_why(
    http: aiohttp.ClientSession, first: Turn | Refusal, status: int
) -> None:
    """An ordinary error response, streamed or not, never a page of HTML."""
    async with ScriptedModelServer(lambda _: first) as server:
        catalog = catalog_at(server.base_url, M, idle_timeout=_patience(first))
        async with running_gateway(catalog, ONE_TRY) as gateway:
            got, body = await _whole(http, gateway)
    assert (got, set(body)) == (status, {"error"})
    assert "<html>" not in str(body)
    receipt = gateway.receipt()
    assert (receipt.status, receipt.http_status, receipt.cost_micros) == ("failed", status, 0)


async def test_a_provider_that_cannot_be_reached_is_a_502(http: aiohttp.ClientSession) -> None:
    """Nothing listens there."""
    with refusing_base_url() as base_url:
        async with running_gateway(catalog_at(base_url, M), ONE_TRY) as gateway:
            body = {"model": "auto", "messages": HELLO, "stream": True}
            async with http.post(f"{gateway.base_url}/chat/completions", json=body) as answer:
                assert answer.status == 502
                assert answer.content_type == "application/json"


@pytest.mark.cases
async def test_a_rate_limit_is_forwarded_with_its_retry_after(http: aiohttp.ClientSession) -> None:
    """Body byte for byte, header kept: SDKs wait for as long as it says."""
    raw = b'{"error":  {"message":"slow down","code":"rate_limit_exceeded"}}'
    refusal = Refusal(429, headers={"Retry-After": "17"}, raw=raw)
    async with (
        ScriptedModelServer(lambda _: refusal) as server,
        running_gateway(catalog_at(server.base_url, M)) as gateway,
    ):
        body = {"model": "auto", "messages": HELLO}
        async with http.post(f"{gateway.base_url}/chat/completions", json=body) as answer:
            assert (answer.status, await answer.read()) == (429, raw)
            assert answer.headers["retry-after"] == "17"
    assert len(server.requests) == 1


async def test_a_short_retry_after_is_waited_out(http: aiohttp.ClientSession) -> None:
    """The only deployment is asked again."""
    script = [Refusal(429, headers={"Retry-After": "0.05"}), Turn("Hi.")]
    async with (
        ScriptedModelServer(script) as server,
        running_gateway(catalog_at(server.base_url, M)) as gateway,
    ):
        status, body = await _whole(http, gateway)
    assert (status, body["routing"]["fallback"]) == (200, False)
    assert len(gateway.receipt().attempts) == 2


@pytest.mark.cases
async def test_a_tool_loop_fails_rather_than_change_its_model(http: aiohttp.ClientSession) -> None:
    """The result of a call is read by the model that made it, or by nobody."""
    scripts = {
        "m": [Turn(calls=CALLS[:1]), Refusal(503), Refusal(503)],
        "n": [Turn("never")],
    }
    async with (
        ScriptedModelServer(scripts) as server,
        running_gateway(catalog_at(server.base_url, M, N)) as gateway,
    ):
        _, first = await _whole(http, gateway, tools=[READ_FILE])
        message = first["choices"][0]["message"]
        result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": ""}
        status, _ = await _whole(
            http, gateway, tools=[READ_FILE], messages=[*HELLO, message, result]
        )
    assert status == 503
    assert {request.model for request in server.requests} == {"m"}


async def test_silence_on_a_stream_is_filled_with_comments(http: aiohttp.ClientSession) -> None:
    """Proxies on the way close connections on which nothing moves."""
    setup = GatewaySetup(app_limits=AppLimits(keep_alive=0.05))
    async with (
        ScriptedModelServer([Turn(LONG, delay=0.3)]) as server,
        running_gateway(catalog_at(server.base_url, M), setup) as gateway,
    ):
        body = {"model": "auto", "messages": HELLO, "stream": True}
        async with http.post(f"{gateway.base_url}/chat/completions", json=body) as answer:
            raw = await answer.read()
    assert raw.startswith(b": keep-alive\n\n")
    assert raw.endswith(b"data: [DONE]\n\n")


async def test_a_late_refusal_after_comments_comes_in_band(http: aiohttp.ClientSession) -> None:
    """The status has been sent by then."""
    setup = GatewaySetup(app_limits=AppLimits(keep_alive=0.05), limits=Limits(attempts=1))
    async with ScriptedModelServer(lambda _: Turn("x", fault="stall")) as server:
        catalog = catalog_at(server.base_url, M, idle_timeout=0.3)
        async with running_gateway(catalog, setup) as gateway:
            events = await _stream(http, gateway)
    assert events[-1]["error"]["code"] == "upstream_timeout"
    assert gateway.receipt().status == "failed"


@pytest.mark.cases
@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_goes_away_stops_the_upstream(
    http: aiohttp.ClientSession, stream: bool
) -> None:
    """Within a second; the receipt says cancelled and bills what was seen, as an estimate."""
    turn = Turn(LONG * 50, pause=0.05) if stream else Turn(LONG, delay=30.0)
    arrived = asyncio.Event()

    def answer_late(_: RecordedRequest) -> Turn:
        arrived.set()
        return turn

    async with (
        ScriptedModelServer(answer_late) as server,
        running_gateway(catalog_at(server.base_url, M)) as gateway,
    ):
        body = {"model": "auto", "messages": HELLO, "stream": stream}
        asking = asyncio.ensure_future(http.post(f"{gateway.base_url}/chat/completions", json=body))
        await asyncio.wait_for(arrived.wait(), 5.0)
        if stream:
            answer = await asking
            await answer.content.readany()
            answer.close()
        else:
            asking.cancel()
        await asyncio.wait_for(server.requests[0].closed.wait(), 1.0)
    receipt = gateway.receipt()
    assert (receipt.status, receipt.http_status) == ("cancelled", 499)
    assert [attempt.error for attempt in receipt.attempts] == ["the client went away"]
    assert receipt.usage.estimated
    assert receipt.cost_micros
