"""Upstreams that fail, and clients that go away, in the responses shape."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any, NamedTuple, get_args

import aiohttp
import pytest

from turnout.core.govern.keys import KeyLimits
from turnout.core.money import Price
from turnout.core.receipts import Receipt
from turnout.gateway.catalog import Catalog, Deployment
from turnout.gateway.exchange import Caller
from turnout.testing.exchange import deployment
from turnout.testing.gateway import GatewaySetup, RunningGateway, catalog_at, running_gateway
from turnout.testing.model_server import (
    Call,
    Refusal,
    ScriptedModelServer,
    Turn,
)
from turnout.testing.responses import ResponsesTurn, ScriptedResponsesServer, called, said
from turnout.testing.responses.turns import Fault

pytestmark = pytest.mark.faults

ONE = replace(deployment("p/one"), price=Price(input=1_000_000, output=2_000_000))
TWO = replace(deployment("q/two"), price=Price(input=1_000_000, output=2_000_000))
TEXT = said("A text of several pieces, each of them short.")
HARMLESS = {"content_type", "drip", "no_end", "no_usage", "usage_twice", "whole"}
LATE = {"cut", "stall_midway", "no_completed", "error_in_band", "failed", "bad_json", "oversized"}
"""Faults that a stream shows after its first visible piece."""


class Told(NamedTuple):
    """What a client read."""

    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        """The answer, as one JSON object."""
        return json.loads(self.raw)

    @property
    def events(self) -> list[Any]:
        """The answer, as a stream."""
        lines = self.raw.split(b"\n")
        return [json.loads(line[6:]) for line in lines if line.startswith(b"data: ")]


class Stage(NamedTuple):
    """A gateway before a scripted server, and a client."""

    gateway: RunningGateway
    client: aiohttp.ClientSession

    async def ask(self, path: str = "responses", **fields: Any) -> Told:
        """Return what a request is told."""
        body = {"model": "auto", **({"input": "Hi"} if path == "responses" else {}), **fields}
        url = f"{self.gateway.base_url}/{path}"
        async with self.client.post(url, json=body) as answer:
            return Told(answer.status, answer.headers, await answer.read())

    def receipts(self) -> list[Receipt]:
        """Return the receipts, oldest first; all are there once the stage is closed."""
        return list(self.gateway.books.receipts.receipts.values())


@asynccontextmanager
async def stage(
    *served: tuple[Any, Deployment], setup: GatewaySetup | None = None
) -> AsyncIterator[Stage]:
    """Serve deployments, each by a scripted server of its own."""
    async with AsyncExitStack() as stack:
        catalog = Catalog()
        for server, deployed in served:
            await stack.enter_async_context(server)
            shape = "responses" if isinstance(server, ScriptedResponsesServer) else "chat"
            one = catalog_at(server.base_url, deployed, idle_timeout=0.3, shape=shape)
            catalog = Catalog(
                {**catalog.providers, **one.providers}, (*catalog.deployments, deployed)
            )
        gateway = await stack.enter_async_context(running_gateway(catalog, setup))
        client = await stack.enter_async_context(aiohttp.ClientSession())
        yield Stage(gateway, client)


@pytest.mark.parametrize("fault", get_args(Fault))
async def test_a_whole_answer_is_right_or_a_clean_error(fault):
    """Never half an answer, never a success without one, and one receipt."""
    script = [ResponsesTurn((TEXT,), fault=fault)] * 4
    async with stage((ScriptedResponsesServer(script), ONE)) as on:
        told = await on.ask()
    (receipt,) = on.receipts()
    if fault in HARMLESS or fault == "no_completed":
        assert told.status == 200
        assert told.body["output"][0]["content"] == TEXT["content"]
        assert receipt.status == "ok"
        assert receipt.usage.estimated == (fault == "no_usage")
    else:
        assert told.status in {502, 504}
        assert set(told.body["error"]) >= {"message", "type", "code"}
        assert receipt.status == "failed"
        assert receipt.cost_micros == 0


@pytest.mark.parametrize("fault", get_args(Fault))
async def test_a_stream_is_right_or_fails_in_band(fault):
    """Before its first piece an error has a status; afterwards the response fails."""
    script = [ResponsesTurn((TEXT,), fault=fault)] * 4
    async with stage((ScriptedResponsesServer(script), ONE)) as on:
        told = await on.ask(stream=True)
    (receipt,) = on.receipts()
    if fault in HARMLESS:
        assert told.events[-1]["type"] == "response.completed"
        assert told.events[-1]["response"]["output"][0]["content"] == TEXT["content"]
        assert sum(e["type"] == "response.completed" for e in told.events) == 1
        assert receipt.status == "ok"
        assert fault == "no_usage" or receipt.usage.output_tokens == 20
    elif fault in LATE:
        assert told.status == 200
        assert told.events[-1]["type"] == "response.failed"
        assert told.events[-1]["response"]["status"] == "failed"
        assert [e["sequence_number"] for e in told.events] == list(range(len(told.events)))
        assert receipt.status == "truncated"
        assert receipt.usage.estimated
        assert receipt.cost_micros
    else:
        assert told.status in {502, 504}
        assert receipt.status == "failed"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fault", ["reset", "stall", "html", "reset_after_headers"])
async def test_another_deployment_answers_while_nothing_was_said(fault, stream):
    """The client reads one answer, and the receipt both attempts."""
    bad = ScriptedResponsesServer([ResponsesTurn((TEXT,), fault=fault)] * 3)
    good = ScriptedModelServer([Turn("From elsewhere.")])
    async with stage((bad, ONE), (good, TWO)) as on:
        told = await on.ask(stream=stream)
    answer = told.events[-1]["response"] if stream else told.body
    assert answer["output"][-1]["content"][0]["text"] == "From elsewhere."
    assert answer["model"] == "two"
    assert answer["routing"]["fallback"]
    assert on.receipts()[-1].attempts[-1].deployment == "q/two"


@pytest.mark.cases
@pytest.mark.parametrize("shape", ["chat", "responses"])
async def test_a_cut_in_a_call_never_looks_like_a_call(shape):
    """The arguments stop in the middle: the response fails, and the item stays open."""
    arguments = '{"diff": "--- a/a.py and so on"}'
    server: Any = ScriptedModelServer([Turn(calls=(Call("f", arguments),), fault="cut")])
    if shape == "responses":
        turn = ResponsesTurn((called("f", arguments, "call_1"),), fault="cut")
        server = ScriptedResponsesServer([turn])
    async with stage((server, ONE)) as on:
        told = await on.ask(stream=True, tools=[{"type": "function", "name": "f"}])
    names = [event["type"] for event in told.events]
    assert names[-1] == "response.failed"
    assert "response.output_item.done" not in names
    assert "response.completed" not in names
    assert on.receipts()[-1].status == "truncated"


@pytest.mark.cases
@pytest.mark.parametrize("shape", ["chat", "responses"])
@pytest.mark.parametrize("stream", [False, True])
async def test_an_upstream_is_let_go_when_the_client_goes(shape, stream):
    """Within a second, streamed or not; what was used is charged as an estimate."""
    arrived = asyncio.Event()
    pace = {"pause": 0.05} if stream else {"delay": 5.0}

    def answer(_request: Any) -> Any:
        arrived.set()
        text = "Slow. " * 20
        return ResponsesTurn((said(text),), **pace) if shape == "responses" else Turn(text, **pace)

    server: Any = (ScriptedResponsesServer if shape == "responses" else ScriptedModelServer)(answer)
    async with stage((server, ONE)) as on:
        url = f"{on.gateway.base_url}/responses"
        body = {"model": "auto", "input": "Hi", "stream": stream}
        asking = asyncio.ensure_future(on.client.post(url, json=body))
        async with asyncio.timeout(3):
            await arrived.wait()
            if stream:
                response = await asking
                await response.content.readany()
                response.close()
            else:
                asking.cancel()
        async with asyncio.timeout(1):
            await server.requests[0].closed.wait()
    (receipt,) = on.receipts()
    assert receipt.status == "cancelled"
    assert receipt.usage.estimated
    assert receipt.cost_micros


@pytest.mark.cases
async def test_every_way_a_request_ends_frees_its_place():
    """Complete, refused and cut: all later requests are admitted."""
    turns = [Turn("Fine."), Refusal(400), Turn("Cut, in the middle.", fault="cut")] * 4
    limited = GatewaySetup(authenticate=lambda _: Caller("k", limits=KeyLimits(concurrency=1)))
    async with stage((ScriptedModelServer(turns), ONE), setup=limited) as on:
        statuses = [(await on.ask(stream=True)).status for _ in turns]
    assert statuses == [200, 400, 200] * 4


@pytest.mark.cases
async def test_an_error_chunk_of_a_chat_upstream_is_no_empty_answer():
    """An error in band with no choices fails the response."""
    turn = Turn("Some text that is long enough.", fault="error_in_band")
    async with stage((ScriptedModelServer([turn] * 4), ONE)) as on:
        told = await on.ask(stream=True)
    assert told.events[-1]["type"] == "response.failed"


@pytest.mark.cases
async def test_an_upstream_s_own_error_of_the_shape_is_passed_on():
    """Its body unmodified, its Retry-After kept."""
    raw = b'{"error": {"message": "Too fast.", "type": "requests", "code": "rate_limit_exceeded"}}'
    refusal = Refusal(429, headers={"Retry-After": "50"}, raw=raw)
    async with stage((ScriptedResponsesServer([refusal] * 4), ONE)) as on:
        told = await on.ask()
    assert (told.status, told.raw) == (429, raw)
    assert told.headers["retry-after"] == "50"


@pytest.mark.cases
async def test_receipts_agree_across_shapes_and_streams():
    """The same tokens at the same price, however they were asked for."""
    messages = [{"role": "user", "content": "Hi"}]
    async with stage((ScriptedModelServer([Turn("Hi.")] * 4), ONE)) as on:
        for stream in (False, True):
            await on.ask(stream=stream)
            await on.ask("chat/completions", messages=messages, stream=stream)
    found = on.receipts()
    assert len(found) == 4
    assert len({(r.usage, r.cost_micros) for r in found}) == 1
    assert found[0].cost_micros == 140
