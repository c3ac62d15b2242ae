"""One bill whatever the shapes, health apart from counting, and no words of anybody in the logs."""

import asyncio
import io
import logging
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace

import aiohttp
import pytest
from tests.integration.spoken import SHAPES, Spoken, ask
from tests.integration.upstreams import TEXT, UPSTREAMS, Answer, Upstream, answer, server_of

from turnout.cli.gateway.request_log import RequestLog
from turnout.core.clock import SystemClock
from turnout.core.json import JsonObject
from turnout.core.money import Micros, Price, PriceTier
from turnout.core.policies import Policy, SessionCaps
from turnout.core.usage import Usage
from turnout.gateway.measure.live import LiveEvidence
from turnout.gateway.stages.attempts.fallback import Limits
from turnout.testing.exchange import deployment
from turnout.testing.gateway import GatewaySetup, catalog_at, running_gateway
from turnout.testing.messages import MessagesTurn, ScriptedMessagesServer, text
from turnout.testing.model_server import Turn
from turnout.testing.responses import ResponsesTurn, said

pytestmark = pytest.mark.cases

M = replace(deployment("p/m"), price=Price(input=1_400_000, output=2_000_000, cache_read=100_000))
USED = Usage(input_tokens=1_000, output_tokens=50, cache_read_input_tokens=900)
COST = 140 + 90 + 100
EXCLUSIVE: JsonObject = {
    "input_tokens": 100,
    "output_tokens": 50,
    "cache_read_input_tokens": 900,
}
"""The same counts as one shape has them: cached tokens beside the input, not among it."""
COUNTED: dict[Upstream, Answer] = {
    "chat": Turn(TEXT, usage=USED),
    "messages": MessagesTurn((text(TEXT),), EXCLUSIVE),
    "responses": ResponsesTurn((said(TEXT),), USED),
}


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    """Yield a client for the gateway."""
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.mark.parametrize("upstream", UPSTREAMS, ids=lambda name: f"up-{name}")
async def test_a_bill_does_not_depend_on_shapes(
    http: aiohttp.ClientSession, upstream: Upstream
) -> None:
    """The client's, the upstream's, streamed or not: the same tokens are the same money."""
    async with (
        server_of(upstream, lambda _: COUNTED[upstream]) as server,
        running_gateway(catalog_at(server.base_url, M, shape=upstream)) as gateway,
    ):
        for shape in SHAPES:
            for stream in (False, True):
                heard = await ask(http, gateway, shape, stream=stream)
                assert (heard.text, heard.usage) == (TEXT, (1_000, 50)), (shape, stream)
                assert f'"cost_micros":{COST}'.encode() in heard.raw, (shape, stream)
        receipts = list(gateway.receipts.receipts.values())
    assert [(r.usage, r.cost_micros, r.status) for r in receipts] == [(USED, COST, "ok")] * 6


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_long_prompt_is_reserved_at_what_long_prompts_cost(
    http: aiohttp.ClientSession, shape: Spoken
) -> None:
    """Five at once, under a cap that one of them comes near: two are served, as ever."""
    dear = PriceTier(200_000, Price(input=2_000_000, output=0))
    tiered = replace(M, price=Price(input=1_000_000, output=0, tiers=(dear,)))
    used = Usage(input_tokens=250_000, output_tokens=1)
    policy = Policy(session=SessionCaps(max_spend=Micros(600_000)))
    more: JsonObject = {"routing": {"session": "s"}}
    async with (
        server_of("chat", lambda _: Turn(TEXT, usage=used, delay=0.3)) as server,
        running_gateway(catalog_at(server.base_url, tiered), GatewaySetup(policy)) as gateway,
    ):
        asked = (
            ask(http, gateway, shape, stream=False, text="word " * 200_000, more=more)
            for _ in range(5)
        )
        statuses = Counter(heard.status for heard in await asyncio.gather(*asked))
        totals = await gateway.books.totals("local", "s")
    assert statuses == {200: 2, 402: 3}
    assert totals == (2, 1_000_000)


async def test_an_upstream_that_counts_no_tokens_is_well(http: aiohttp.ClientSession) -> None:
    """It lacks that route; models are what its health is about."""
    evidence = LiveEvidence(SystemClock())
    turn = MessagesTurn((text(TEXT),))
    async with ScriptedMessagesServer(lambda _: turn) as server:
        catalog = catalog_at(server.base_url, M, shape="messages")
        async with running_gateway(catalog, GatewaySetup(evidence=evidence)) as gateway:
            body = {"model": "auto", "messages": [{"role": "user", "content": "Hello"}]}
            for _ in range(20):
                url = f"{gateway.base_url}/messages/count_tokens"
                async with http.post(url, json=body) as counted:
                    assert counted.status == 200
                    assert (await counted.json())["input_tokens"] > 0
            assert evidence.circuits.ailing() == {}
            heard = await ask(http, gateway, "messages", stream=False)
    assert (heard.status, heard.text) == (200, TEXT)


PROMPT = "a-secret-of-the-prompt"


@pytest.mark.parametrize("upstream", UPSTREAMS, ids=lambda name: f"up-{name}")
@pytest.mark.parametrize("shape", SHAPES)
async def test_what_is_said_is_not_logged(
    http: aiohttp.ClientSession,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    shape: Spoken,
    upstream: Upstream,
) -> None:
    """Neither prompt nor answer, be it whole, streamed, broken off or refused."""
    caplog.set_level(logging.DEBUG)
    printed = io.StringIO()
    answers = [
        answer(upstream),
        answer(upstream),
        answer(upstream, "cut in the text"),
        answer(upstream, "bad line"),
    ]
    with RequestLog(printed) as log:
        setup = GatewaySetup(limits=Limits(attempts=1), on_receipt=log.note)
        async with server_of(upstream, lambda asked: answers[asked.number]) as server:
            catalog = catalog_at(server.base_url, M, shape=upstream)
            async with running_gateway(catalog, setup) as gateway:
                for stream in (False, True, True, False):
                    await ask(http, gateway, shape, stream=stream, tools=True, text=PROMPT)
    lines = printed.getvalue()
    assert lines.count("\n") >= len(answers)
    seen = "\n".join([lines, caplog.text, *capfd.readouterr()])
    assert [word for word in (PROMPT, "seven 北京", "in/several/pieces") if word in seen] == []
