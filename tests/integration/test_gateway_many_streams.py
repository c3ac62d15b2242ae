"""Many streams at once in one process, and clients of every shape that leave in the middle."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import aiohttp
import orjson
import pytest
from aiohttp import web
from tests.integration.spoken import SHAPES, Spoken, ask, question
from tests.integration.upstreams import (
    TEXT,
    UPSTREAMS,
    Answer,
    Asked,
    Upstream,
    answer,
    server_of,
    slow,
)

from turnout.core.govern.keys import KeyLimits
from turnout.core.json import JsonObject
from turnout.core.money import Micros, Price
from turnout.core.policies import Policy, SessionCaps
from turnout.gateway.exchange import Caller
from turnout.testing.exchange import deployment
from turnout.testing.gateway import GatewaySetup, catalog_at, running_gateway

PATHS = {"chat": "/chat/completions", "messages": "/messages", "responses": "/responses"}
M = replace(deployment("p/m"), price=Price(input=1_000_000, output=2_000_000))
STREAMS, ROUNDS = 240, 5
WAIT = 30.0
"""Seconds in which every stream must have moved once; a loaded machine needs some of them."""


class Lockstep:
    """An upstream whose streams all say their next word at the same time, when they are told."""

    def __init__(self) -> None:
        self.open = 0
        self._round = 0
        self._moved = asyncio.Condition()

    async def all_open(self, wanted: int) -> None:
        """Return once that many streams are open at the same time."""
        async with self._moved:
            await self._moved.wait_for(lambda: self.open == wanted)

    async def step(self) -> None:
        """Let every stream say one word more."""
        async with self._moved:
            self._round += 1
            self._moved.notify_all()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Serve one stream."""
        await request.read()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        async with self._moved:
            self.open += 1
            self._moved.notify_all()
        for at in range(1, ROUNDS + 1):
            async with self._moved:
                await self._moved.wait_for(lambda at=at: self._round >= at)
            await response.write(_chunk({"content": f"w{at} "}))
        await response.write(_chunk({}, "stop") + b"data: [DONE]\n\n")
        await response.write_eof()
        return response


def _chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + orjson.dumps({"id": "c", "model": "m", "choices": [choice]}) + b"\n\n"


class Listener:
    """A client that reads one stream word by word."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer
        self._read = b""

    async def hears(self, word: bytes) -> None:
        """Return once the word has come."""
        while word not in self._read:
            data = await self._answer.content.readany()
            assert data, self._read
            self._read += data

    async def rest(self) -> bytes:
        """Return all that was heard once the stream is over."""
        self._read += await self._answer.read()
        return self._read


@asynccontextmanager
async def lockstep() -> AsyncIterator[tuple[Lockstep, str]]:
    """Serve such an upstream; yield it with its base URL."""
    steps = Lockstep()
    app = web.Application()
    app.router.add_post("/v1/chat/completions", steps.answer)
    runner = web.AppRunner(app, shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=2 * STREAMS).start()
    try:
        yield steps, f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


async def test_hundreds_of_streams_move_together() -> None:
    """All are open at once, in all shapes, and each hears every word before the next is said."""
    ends = {"chat": b"data: [DONE]\n\n", "messages": b"message_stop", "responses": b"e.completed"}
    async with (
        lockstep() as (steps, base_url),
        running_gateway(catalog_at(base_url, M, idle_timeout=2 * WAIT)) as gateway,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http,
    ):
        kinds = [SHAPES[number % len(SHAPES)] for number in range(STREAMS)]
        asked = [
            asyncio.ensure_future(
                http.post(
                    gateway.base_url + PATHS[shape],
                    json=question(shape, "Hello", tools=False, stream=True),
                )
            )
            for shape in kinds
        ]
        async with asyncio.timeout(WAIT):
            await steps.all_open(STREAMS)
            await steps.step()
            listeners = [Listener(answer) for answer in await asyncio.gather(*asked)]
        for at in range(1, ROUNDS + 1):
            async with asyncio.timeout(WAIT):
                await asyncio.gather(*(one.hears(b"w%d " % at) for one in listeners))
            await steps.step()
        async with asyncio.timeout(WAIT):
            heard = await asyncio.gather(*(one.rest() for one in listeners))
        receipts = list(gateway.receipts.receipts.values())
    assert all(ends[shape] in raw for shape, raw in zip(kinds, heard, strict=True))
    assert [receipt.status for receipt in receipts] == ["ok"] * STREAMS


LEAVING = GatewaySetup(
    Policy(session=SessionCaps(max_requests=1_000, max_spend=Micros(10**9))),
    authenticate=lambda _: Caller("ci", limits=KeyLimits(concurrency=1)),
)


@pytest.mark.cases
@pytest.mark.faults
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("upstream", UPSTREAMS, ids=lambda name: f"up-{name}")
async def test_a_client_that_leaves_stops_the_upstream_within_a_second(
    upstream: Upstream, shape: Spoken, stream: bool
) -> None:
    """What came is charged and marked as an estimate, the reservation is settled, the slot free."""
    arrived, written = asyncio.Event(), asyncio.Event()
    setup = replace(LEAVING, on_receipt=lambda _: written.set())

    def script(asked: Asked) -> Answer:
        if asked.number:
            return answer(upstream, calls=False)
        arrived.set()
        return slow(upstream, 0.02) if stream else answer(upstream, "silent")

    async with (
        server_of(upstream, script) as server,
        running_gateway(catalog_at(server.base_url, M, shape=upstream), setup) as gateway,
        aiohttp.ClientSession() as http,
    ):
        body = {
            **question(shape, "Hello", tools=False, stream=stream),
            "routing": {"session": "s"},
        }
        asking = asyncio.ensure_future(http.post(gateway.base_url + PATHS[shape], json=body))
        async with asyncio.timeout(5):
            await arrived.wait()
            if stream:
                told = await asking
                await Listener(told).hears(b"one two")
                told.close()
            else:
                asking.cancel()
        async with asyncio.timeout(1):
            await server.requests[0].closed.wait()
            await written.wait()
        receipt = gateway.receipt()
        more: JsonObject = {"routing": {"session": "s"}}
        after = await ask(http, gateway, shape, stream=stream, more=more)
        totals = await gateway.books.totals("ci", "s")
        spent = [closing.receipt.cost_micros or 0 for closing in gateway.books.closings]
    assert (receipt.status, receipt.http_status) == ("cancelled", 499)
    assert receipt.usage.estimated
    assert receipt.usage.input_tokens > 0
    assert (receipt.usage.output_tokens > 0) == stream
    assert (after.status, after.text) == (200, TEXT)
    assert spent[0] > 0
    assert totals == (2, sum(spent))
