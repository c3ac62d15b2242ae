"""Whatever an upstream of the messages shape does, every client gets an answer or a clean error."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import aiohttp
import orjson
import pytest
from tests.integration.spoken import SHAPES, Heard, Spoken, ask

from turnout.core.money import Price
from turnout.core.usage import Usage
from turnout.gateway.stages.attempts.fallback import Limits
from turnout.testing.exchange import deployment
from turnout.testing.gateway import GatewaySetup, RunningGateway, catalog_at, running_gateway
from turnout.testing.messages import (
    MessagesFault,
    MessagesRefusal,
    MessagesTurn,
    ScriptedMessagesServer,
    text,
    thinking,
    tool_use,
)
from turnout.testing.messages.server import MessagesAnswer

pytestmark = [pytest.mark.faults, pytest.mark.cases]

shapes = pytest.mark.parametrize("shape", SHAPES)
streams = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
TEXT = "one two three four five six seven 北京🙂é"
CONTENT = (
    thinking("Both.", "sig"),
    text(TEXT),
    tool_use("read_file", {"path": "a.py"}, "toolu_1"),
    tool_use("read_file", {}, "toolu_2"),
)
CALLS = [("read_file", {"path": "a.py"}), ("read_file", {})]
M = replace(deployment("p/m"), price=Price(input=1_000_000, output=2_000_000))
ONE_TRY = GatewaySetup(limits=Limits(attempts=1))


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    """Yield a client for the gateway."""
    async with aiohttp.ClientSession() as session:
        yield session


async def _asked(
    http: aiohttp.ClientSession, answer: MessagesAnswer, shape: Spoken, stream: bool
) -> tuple[Heard, RunningGateway]:
    async with ScriptedMessagesServer([answer]) as server:
        catalog = catalog_at(server.base_url, M, shape="messages", idle_timeout=0.4)
        async with running_gateway(catalog, ONE_TRY) as gateway:
            heard = await ask(http, gateway, shape, stream=stream, tools=True)
    assert server.faults == []
    return heard, gateway


def _parsed(heard: Heard) -> list[Any]:
    return [(name, orjson.loads(arguments)) for name, arguments in heard.calls]


@shapes
@streams
@pytest.mark.parametrize(
    "fault", [None, "drip", "content_type", "no_stop", "usage_twice", "whole"], ids=str
)
async def test_what_can_be_made_good_is(
    http: aiohttp.ClientSession, shape: Spoken, stream: bool, fault: MessagesFault | None
) -> None:
    """Text and calls arrive whole, once and in order, and are billed once."""
    counts = {"input_tokens": 40, "cache_read_input_tokens": 60, "output_tokens": 20}
    heard, gateway = await _asked(http, MessagesTurn(CONTENT, counts, fault=fault), shape, stream)
    receipt = gateway.receipt()
    assert (heard.status, heard.error, heard.text) == (200, "", TEXT)
    assert _parsed(heard) == CALLS
    assert heard.finish in {"tool_calls", "tool_use", "completed"}
    assert heard.usage == (100, 20)
    assert receipt.usage == Usage(100, 20, cache_read_input_tokens=60)
    assert receipt.tools_called == ("read_file", "read_file")
    assert receipt.repairs == ()


@shapes
@streams
@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (MessagesTurn(fault="reset"), 502),
        (MessagesTurn(fault="reset_after_headers"), 502),
        (MessagesTurn(fault="stall"), 504),
        (MessagesTurn(fault="html"), 502),
        (MessagesRefusal(402, "billing_error"), 502),
        (MessagesRefusal(500), 502),
        (MessagesRefusal(429, "rate_limit_error", "Slow down", {"retry-after": "7"}), 429),
        (MessagesRefusal(400, "invalid_request_error", "Too long"), 400),
        (MessagesRefusal(500, raw=b"<html>Bad gateway</html>"), 502),
    ],
    ids=lambda value: getattr(value, "fault", None) or str(value)[:40],
)
async def test_what_nobody_saw_is_an_error_with_its_status(
    http: aiohttp.ClientSession, answer: MessagesAnswer, status: int, shape: Spoken, stream: bool
) -> None:
    """In the shape of the client, in the words of the upstream, and nothing billed."""
    heard, gateway = await _asked(http, answer, shape, stream)
    assert heard.status == status
    assert heard.error
    assert b"<html>" not in heard.raw
    if isinstance(answer, MessagesRefusal) and status < 500:
        assert heard.error == answer.said
        assert heard.headers.get("retry-after") == answer.headers.get("retry-after")
    assert gateway.receipt().usage == Usage()
    assert gateway.receipt().cost_micros == 0


@shapes
@pytest.mark.parametrize("fault", ["cut", "stall_midway", "bad_json", "error_in_band"])
async def test_what_breaks_in_sight_ends_in_an_error(
    http: aiohttp.ClientSession, shape: Spoken, fault: MessagesFault
) -> None:
    """Never in a made-up end; what came is charged as an estimate."""
    turn = MessagesTurn((text(TEXT), tool_use("read_file", {"path": "a" * 90}, "t")), fault=fault)
    heard, gateway = await _asked(http, turn, shape, stream=True)
    receipt = gateway.receipt()
    assert heard.error
    assert heard.finish in {"", "failed"}
    assert heard.text == TEXT
    assert receipt.status == "truncated"
    assert receipt.usage.input_tokens > 0
    assert receipt.usage.output_tokens > 0
