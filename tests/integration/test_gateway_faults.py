"""Whatever an upstream of the chat shape does, every client gets an answer or a clean error."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import aiohttp
import orjson
import pytest
from tests.integration.spoken import SHAPES, Heard, Spoken, ask, question

from turnout.core.clock import SystemClock
from turnout.core.govern.keys import KeyLimits
from turnout.core.ids import DeploymentId
from turnout.core.money import Micros, Price
from turnout.core.policies import Policy, SessionCaps
from turnout.core.usage import Usage
from turnout.gateway.exchange import Caller, UpstreamError
from turnout.gateway.measure.circuits import Circuits
from turnout.gateway.measure.live import LiveEvidence
from turnout.gateway.stages.attempts.fallback import Limits
from turnout.testing.exchange import deployment
from turnout.testing.gateway import GatewaySetup, RunningGateway, catalog_at, running_gateway
from turnout.testing.model_server import (
    Call,
    Fault,
    Refusal,
    Script,
    ScriptedModelServer,
    Turn,
    refusing_base_url,
)

pytestmark = pytest.mark.faults

TEXT = "one two three four five six seven 北京🙂é"
CALLS = (Call("read_file", {"path": "a.py"}), Call("read_file", {"path": "b.py"}))
ARGUMENTS = (("read_file", '{"path": "a.py"}'), ("read_file", '{"path": "b.py"}'))
M = replace(deployment("p/m"), price=Price(input=1_000_000, output=2_000_000))
N = replace(deployment("p/n"), price=Price(input=9_000_000, output=9_000_000))
ONE_TRY = GatewaySetup(limits=Limits(attempts=1))
USED = Usage(input_tokens=100, output_tokens=20)


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    """Yield a client for the gateway."""
    async with aiohttp.ClientSession() as session:
        yield session


def _parsed(calls: tuple[tuple[str, str], ...]) -> list[Any]:
    return [(name, orjson.loads(arguments)) for name, arguments in calls]


async def _asked(
    http: aiohttp.ClientSession,
    script: Script,
    shape: Spoken,
    stream: bool,
    *,
    tools: bool = False,
    patience: float = 5.0,
) -> tuple[Heard, RunningGateway, ScriptedModelServer]:
    """Ask a gateway with one deployment, which is tried once."""
    async with ScriptedModelServer(script) as server:
        catalog = catalog_at(server.base_url, M, idle_timeout=patience)
        async with running_gateway(catalog, ONE_TRY) as gateway:
            heard = await ask(http, gateway, shape, stream=stream, tools=tools)
    return heard, gateway, server


@pytest.mark.cases
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "fault",
    [None, "no_done", "usage_twice", "drip", "content_type", "no_index", "zero_index"],
    ids=str,
)
async def test_what_can_be_made_good_is(
    http: aiohttp.ClientSession, shape: Spoken, stream: bool, fault: Fault | None
) -> None:
    """Text and calls arrive whole and once, and are billed once."""
    turn = Turn(TEXT, calls=CALLS, fault=fault)
    heard, gateway, _ = await _asked(http, [turn], shape, stream, tools=True)
    assert (heard.status, heard.error, heard.text) == (200, "", TEXT)
    assert _parsed(heard.calls) == _parsed(ARGUMENTS)
    assert heard.finish in {"tool_calls", "tool_use", "completed"}
    assert heard.usage == (100, 20)
    receipt = gateway.receipt()
    assert (receipt.status, receipt.usage, receipt.cost_micros) == ("ok", USED, 140)
    assert receipt.tools_called == ("read_file", "read_file")


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_stream_that_nobody_closes_ends_all_the_same(
    http: aiohttp.ClientSession, shape: Spoken
) -> None:
    """The finish reason and the counts were there."""
    heard, gateway, _ = await _asked(http, [Turn(TEXT, fault="no_end")], shape, True)
    assert (heard.text, heard.error, heard.usage) == (TEXT, "", (100, 20))
    assert gateway.receipt().status == "ok"


_UNSEEN: list[tuple[Turn | Refusal, int]] = [
    (Turn(TEXT, fault="reset"), 502),
    (Turn(TEXT, fault="reset_after_headers"), 502),
    (Turn(TEXT, fault="stall"), 504),
    (Turn(TEXT, fault="html"), 502),
    (Refusal(402, "pay first"), 502),
    (Refusal(500), 502),
    (Refusal(503), 503),
    (Refusal(502, raw=b"<html>Bad gateway</html>"), 502),
    (Refusal(500, raw=b'{"error":{"message":"' + b"x" * 100_000 + b'"}}'), 502),
    (Refusal(200, raw=b""), 502),
    (Refusal(200, raw=b"[1]"), 502),
]


@pytest.mark.cases
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("answer", "status"), _UNSEEN, ids=lambda value: str(value)[:40])
async def test_a_fault_before_anything_was_seen_is_an_error_response(
    http: aiohttp.ClientSession,
    shape: Spoken,
    stream: bool,
    answer: Turn | Refusal,
    status: int,
) -> None:
    """Of the client's shape, with a status, costing nothing; never the upstream's page."""
    patience = 0.3 if "stall" in str(answer) else 5.0
    heard, gateway, _ = await _asked(http, lambda _: answer, shape, stream, patience=patience)
    assert heard.status == status
    assert heard.error
    assert b"<html>" not in heard.raw
    receipt = gateway.receipt()
    assert (receipt.status, receipt.http_status, receipt.cost_micros) == ("failed", status, 0)
    assert len(receipt.attempts) == 1


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("shape", SHAPES)
async def test_where_nothing_listens_it_is_a_502(
    http: aiohttp.ClientSession, shape: Spoken, stream: bool
) -> None:
    """The connection was refused."""
    with refusing_base_url() as base_url:
        async with running_gateway(catalog_at(base_url, M), ONE_TRY) as gateway:
            heard = await ask(http, gateway, shape, stream=stream)
    assert (heard.status, "refused" in heard.error) == (502, True)


@pytest.mark.cases
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("fault", ["bad_json", "oversized", "error_in_band", "cut"])
async def test_a_whole_answer_that_cannot_be_read_is_a_502_without_its_body(
    http: aiohttp.ClientSession, shape: Spoken, fault: Fault
) -> None:
    """An answer is never an error with status 200."""
    heard, gateway, _ = await _asked(http, lambda _: Turn(TEXT, fault=fault), shape, False)
    assert heard.status in {502, 503}
    assert heard.error
    assert TEXT not in heard.raw.decode()
    assert gateway.receipt().status == "failed"


@pytest.mark.cases
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("fault", ["cut", "stall_midway", "bad_json", "error_in_band", "oversized"])
@pytest.mark.parametrize("turn", [Turn(TEXT), Turn(calls=CALLS)], ids=["text", "calls"])
async def test_a_stream_that_breaks_off_says_so_in_band(
    http: aiohttp.ClientSession, shape: Spoken, fault: Fault, turn: Turn
) -> None:
    """Never a finish that was not there, never another model in the middle; a part is charged."""
    broken = replace(turn, fault=fault)
    patience = 0.3 if fault == "stall_midway" else 5.0
    async with ScriptedModelServer(lambda _: broken) as server:
        catalog = catalog_at(server.base_url, M, N, idle_timeout=patience)
        async with running_gateway(catalog) as gateway:
            heard = await ask(http, gateway, shape, stream=True, tools=True)
    assert (heard.status, heard.finish) == (200, "")
    assert heard.error
    assert len(server.requests) == 1
    receipt = gateway.receipt()
    assert (receipt.status, len(receipt.attempts)) == ("truncated", 1)
    assert receipt.usage.estimated
    assert receipt.cost_micros


@pytest.mark.cases
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"Retry-After": "17"}, "17"),
        ({"retry-after-ms": "16500"}, "17"),
        ({"Retry-After": "Fri, 01 Jan 2100 00:00:00 GMT"}, None),
        ({}, None),
    ],
    ids=str,
)
async def test_a_rate_limit_keeps_its_status_words_and_wait(
    http: aiohttp.ClientSession,
    shape: Spoken,
    stream: bool,
    headers: dict[str, str],
    wait: str | None,
) -> None:
    """In whichever form the upstream named it."""
    refusal = Refusal(429, "slow down", "rate_limit_exceeded", headers=headers)
    heard, _, server = await _asked(http, lambda _: refusal, shape, stream)
    assert (heard.status, heard.error) == (429, "slow down")
    if wait is not None:
        assert heard.headers["retry-after"] == wait
    if "2100" in str(headers):
        assert heard.headers["x-should-retry"] == "false"
    assert len(server.requests) == 1


@pytest.mark.cases
@pytest.mark.parametrize("shape", SHAPES)
async def test_a_complaint_about_the_request_keeps_its_words(
    http: aiohttp.ClientSession, shape: Spoken
) -> None:
    """Unmodified where the shapes are the same, in the client's own shape elsewhere."""
    raw = b'{"error": {"message":"the prompt is too long: 9 > 8","zzz":1}}'
    heard, _, _ = await _asked(http, [Refusal(400, raw=raw)], shape, False)
    assert (heard.status, heard.error) == (400, "the prompt is too long: 9 > 8")
    assert (heard.raw == raw) == (shape == "chat")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("shape", SHAPES)
async def test_a_burst_of_failures_is_outlived(
    http: aiohttp.ClientSession, shape: Spoken, stream: bool
) -> None:
    """One answer, one bill."""
    script = [Refusal(500), Refusal(503), Turn(TEXT)]
    setup = GatewaySetup(limits=Limits(attempts=4, tries_each=3, backoff=0.01))
    async with (
        ScriptedModelServer(script) as server,
        running_gateway(catalog_at(server.base_url, M), setup) as gateway,
    ):
        heard = await ask(http, gateway, shape, stream=stream)
    assert (heard.status, heard.text) == (200, TEXT)
    receipt = gateway.receipt()
    assert [attempt.status for attempt in receipt.attempts] == [500, 503, 200]
    assert receipt.cost_micros == 140


@pytest.mark.cases
@pytest.mark.parametrize("shape", SHAPES)
async def test_the_first_words_may_come_with_the_role(
    http: aiohttp.ClientSession, shape: Spoken
) -> None:
    """Nothing of the first chunk is lost."""
    first = b'{"choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"}}]}'
    last = b'{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}'
    raw = b"data: " + first + b"\n\ndata: " + last + b"\n\ndata: [DONE]\n\n"
    refusal = Refusal(200, raw=raw, headers={"Content-Type": "text/event-stream"})
    heard, gateway, _ = await _asked(http, [refusal], shape, True)
    assert (heard.text, heard.error) == ("Hi", "")
    assert gateway.receipt().usage.estimated


@pytest.mark.cases
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("shape", SHAPES)
async def test_a_finish_for_calls_that_are_not_there_is_none(
    http: aiohttp.ClientSession, shape: Spoken, stream: bool
) -> None:
    """Agents wait for ever for a call that was announced."""
    turn = Turn("So.", finish_reason="tool_calls")
    heard, gateway, _ = await _asked(http, [turn], shape, stream, tools=True)
    assert heard.calls == ()
    assert heard.finish in {"stop", "end_turn", "completed"}
    assert "finish reason made stop" in gateway.receipt().repairs


@pytest.mark.cases
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("shape", SHAPES)
async def test_a_call_without_arguments_has_an_empty_object(
    http: aiohttp.ClientSession, shape: Spoken, stream: bool
) -> None:
    """And is closed before the next one opens."""
    calls = (CALLS[0], Call("read_file", ""))
    heard, _, _ = await _asked(http, [Turn(calls=calls)], shape, stream, tools=True)
    assert _parsed(heard.calls) == [("read_file", {"path": "a.py"}), ("read_file", {})]


@pytest.mark.cases
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("shape", SHAPES)
async def test_a_call_left_in_the_text_counts_against_the_model(
    http: aiohttp.ClientSession, shape: Spoken, stream: bool
) -> None:
    """It is evidence, whether it could be read or not."""
    turn = Turn("I look:", calls=CALLS[:1], fault="call_in_text")
    evidence = LiveEvidence(SystemClock())
    async with ScriptedModelServer([turn]) as server:
        catalog = catalog_at(server.base_url, M)
        async with running_gateway(catalog, GatewaySetup(evidence=evidence)) as gateway:
            await ask(http, gateway, shape, stream=stream, tools=True)
    seen = evidence.snapshot().of[M.id]
    assert (seen.tool_samples, seen.tool_success) == (1, 0.0)


@pytest.mark.cases
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("shape", SHAPES)
async def test_a_client_that_goes_away_stops_the_upstream_at_once(
    http: aiohttp.ClientSession, shape: Spoken, stream: bool
) -> None:
    """Within a second, whatever was asked for; what came is charged as an estimate."""
    turn = Turn(TEXT * 50, pause=0.05) if stream else Turn(TEXT, delay=30.0)
    arrived = asyncio.Event()

    def late(_: object) -> Turn:
        arrived.set()
        return turn

    async with (
        ScriptedModelServer(late) as server,
        running_gateway(catalog_at(server.base_url, M)) as gateway,
    ):
        body = question(shape, "Hello", tools=False, stream=stream)
        path = {"chat": "chat/completions"}.get(shape, shape)
        asking = asyncio.ensure_future(http.post(f"{gateway.base_url}/{path}", json=body))
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
    assert receipt.usage.estimated
    assert receipt.cost_micros


@pytest.mark.cases
async def test_every_shape_is_metered_alike(http: aiohttp.ClientSession) -> None:
    """The same answer is the same receipt, streamed or not."""
    used = Usage(input_tokens=1_000, output_tokens=50, cache_read_input_tokens=900)
    bills = set()
    async with (
        ScriptedModelServer(lambda _: Turn(TEXT, usage=used)) as server,
        running_gateway(catalog_at(server.base_url, M)) as gateway,
    ):
        for shape in SHAPES:
            for stream in (False, True):
                heard = await ask(http, gateway, shape, stream=stream)
                assert heard.usage == (1_000, 50)
                receipt = gateway.receipt()
                bills.add((receipt.usage, receipt.cost_micros, receipt.status))
    assert len(bills) == 1


_ALL_FAULTS: list[Turn | Refusal] = [
    *(answer for answer, _ in _UNSEEN if "stall" not in str(answer)),
    *(
        Turn(TEXT, calls=CALLS, fault=fault)
        for fault in ("cut", "bad_json", "error_in_band", "no_done", "usage_twice", "drip")
    ),
    Refusal(429, headers={"Retry-After": "60"}),
]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("shape", SHAPES)
async def test_no_fault_leaks_a_slot_or_is_billed_twice(
    http: aiohttp.ClientSession, shape: Spoken, stream: bool
) -> None:
    """A key that may ask one thing at a time goes on; the session adds up to its receipts."""
    script = [*_ALL_FAULTS, Turn(TEXT)]
    caller = Caller("k", limits=KeyLimits(concurrency=1))
    setup = GatewaySetup(
        Policy(session=SessionCaps(max_spend=Micros(10**9))),
        authenticate=lambda _: caller,
        limits=Limits(attempts=1),
        evidence=LiveEvidence(SystemClock(), circuits=Tolerant(SystemClock())),
    )
    session = {"x-session-id": "s"}
    async with (
        ScriptedModelServer(script) as server,
        running_gateway(catalog_at(server.base_url, M), setup) as gateway,
    ):
        for _ in script:
            heard = await ask(http, gateway, shape, stream=stream, tools=True, headers=session)
        totals = await gateway.books.totals("k", "s")
    assert (heard.status, heard.text) == (200, TEXT)
    receipts = gateway.receipts.receipts.values()
    assert len(server.requests) == len(receipts) == len(script)
    assert totals.spend == sum(receipt.cost_micros or 0 for receipt in receipts)
    assert totals.requests == len(script)


class Tolerant(Circuits):
    """Circuits that stay closed whatever happens."""

    def failed(self, deployment: DeploymentId, error: UpstreamError) -> None:
        """Take no notice."""
        self.abandoned(deployment)
