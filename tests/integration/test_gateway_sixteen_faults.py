"""Sixteen faults of upstreams, of each shape, under clients of each shape, streamed or not.

Every one ends in the right answer or in a clean error of the client's own shape, and leaves one
receipt, one bill and nothing that is still held. A gateway is shared by the clients of a test, of
which each asks a model of its own: nobody meets the health that another one has left.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from itertools import product

import aiohttp
import orjson
import pytest
from tests.integration.spoken import SHAPES, Heard, Spoken, ask
from tests.integration.upstreams import (
    CALL,
    FAULTS,
    TEXT,
    UPSTREAMS,
    USED,
    Answer,
    Asked,
    Fault,
    Server,
    Upstream,
    answer,
    outcome,
    refusal,
    server_of,
)

from turnout.core.govern.keys import KeyLimits
from turnout.core.money import Micros, Price
from turnout.core.policies import PinnedFallback, Policy, SessionCaps
from turnout.core.receipts import Receipt
from turnout.gateway.catalog import Catalog
from turnout.gateway.exchange import Caller
from turnout.gateway.stages.attempts.fallback import Limits
from turnout.testing.exchange import deployment
from turnout.testing.gateway import GatewaySetup, RunningGateway, catalog_at, running_gateway
from turnout.testing.model_server import ScriptedModelServer, Turn, refusing_base_url

pytestmark = [pytest.mark.faults, pytest.mark.cases]

CLIENTS: list[tuple[Spoken, bool]] = list(product(SHAPES, (False, True)))
"""Shape, and whether the answer is streamed."""
SICK = [
    replace(deployment(f"sick/m{at}"), price=Price(input=1_000_000, output=2_000_000))
    for at in range(len(CLIENTS))
]
WELL = replace(deployment("well/n"), price=Price(input=2_000_000, output=3_000_000))
COST, COST_ELSEWHERE = 140, 260
SILENCE = 0.2
"""Seconds of it after which an upstream counts as stalled here."""
upstreams = pytest.mark.parametrize("upstream", UPSTREAMS, ids=lambda name: f"up-{name}")


def _each(faults: list[Fault]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("fault", faults, ids=lambda name: name.replace(" ", "_"))


def _one_at_a_time(_: Mapping[str, str]) -> Caller:
    return Caller("ci", limits=KeyLimits(concurrency=1))


CAPPED = Policy(session=SessionCaps(max_requests=1_000, max_spend=Micros(10**9)))
SETUP = GatewaySetup(
    CAPPED, authenticate=_one_at_a_time, limits=Limits(attempts=3, tries_each=1, backoff=0.0)
)
ELSEWHERE = replace(SETUP, policy=replace(CAPPED, pinned=PinnedFallback("model", "n")))
"""Whoever asks for another model is served by `n` where that one fails."""


@dataclass
class Stage:
    """A gateway before a sick upstream and a well one, and a client that may ask one at a time."""

    gateway: RunningGateway
    sick: Server
    well: ScriptedModelServer
    http: aiohttp.ClientSession

    async def ask(self, shape: Spoken, *, stream: bool, model: str = "") -> Heard:
        """Ask a model by name; empty: the sick one of this client."""
        named = model or f"m{CLIENTS.index((shape, stream))}"
        more = {"model": named, "routing": {"session": "s"}}
        return await ask(self.http, self.gateway, shape, stream=stream, tools=True, more=more)

    async def close_books(self, heard: Heard, shape: Spoken) -> Receipt:
        """Check what a request left behind and that the next one is served; return its receipt."""
        closings = self.gateway.books.closings
        written, closing = len(closings), closings[-1]
        receipt = closing.receipt
        assert heard.headers["x-request-id"] == receipt.request_id
        assert closing.actual == receipt.cost_micros
        after = await self.ask(shape, stream=True, model="n")
        assert (after.status, after.text) == (200, "All is well.")
        assert len(closings) == written + 1
        assert len({one.receipt.request_id for one in closings}) == len(closings)
        spent = sum(one.receipt.cost_micros or 0 for one in closings)
        assert await self.gateway.books.totals("ci", "s") == (len(closings), spent)
        return receipt


@asynccontextmanager
async def staged(
    upstream: Upstream, script: Callable[[Asked], Answer], setup: GatewaySetup = SETUP
) -> AsyncIterator[Stage]:
    """Serve the models of a sick upstream, and one of a well one."""
    async with (
        server_of(upstream, script) as sick,
        ScriptedModelServer(lambda _: Turn("All is well.")) as well,
        aiohttp.ClientSession() as http,
    ):
        one = catalog_at(sick.base_url, *SICK, shape=upstream, idle_timeout=SILENCE)
        two = catalog_at(well.base_url, WELL)
        catalog = Catalog({**one.providers, **two.providers}, (*SICK, WELL))
        async with running_gateway(catalog, setup) as gateway:
            yield Stage(gateway, sick, well, http)


@contextmanager
def asked_by(shape: Spoken, stream: bool) -> Iterator[None]:
    """Name the client in whatever goes wrong inside the block."""
    try:
        yield
    except AssertionError as error:
        error.add_note(f"asked by a client of the {shape} shape, {stream=}")
        raise


def _assert_right(heard: Heard) -> None:
    assert (heard.status, heard.error, heard.text) == (200, "", TEXT)
    assert [(name, orjson.loads(text)) for name, text in heard.calls] == [CALL]
    assert heard.finish in {"tool_calls", "tool_use", "completed"}
    assert heard.usage == (100, 20)


def _assert_failed(heard: Heard, *, timed_out: bool) -> None:
    """Assert that the client read an error response, and nothing of the upstream's body."""
    assert heard.status in ({504} if timed_out else {502, 503, 529})
    assert heard.error
    assert TEXT[:12] not in heard.raw.decode()
    assert b"<" not in heard.raw


def _assert_broken_in_band(heard: Heard, shape: Spoken) -> None:
    """Assert that a part was heard, then an error, and no end that was not there."""
    assert (heard.status, heard.finish, heard.usage) == (200, "", None)
    assert heard.error
    assert TEXT.startswith(heard.text)
    last = heard.raw.strip().split(b"\n\n")[-1]
    starts = {
        "chat": b'data: {"error"',
        "messages": b"event: error\n",
        "responses": b"event: response.failed\n",
    }
    assert last.startswith(starts[shape])
    assert b"data: [DONE]" not in heard.raw
    for name, arguments in heard.calls:
        assert name == CALL[0]
        assert orjson.dumps(CALL[1]).startswith(arguments.replace(" ", "").encode())


def _assert_outcome(
    upstream: Upstream, fault: Fault, client: tuple[Spoken, bool], heard: Heard, receipt: Receipt
) -> None:
    shape, stream = client
    match outcome(upstream, fault, stream=stream):
        case "right":
            _assert_right(heard)
            assert (receipt.status, receipt.usage, receipt.cost_micros) == ("ok", USED, COST)
            assert receipt.tools_called == ("read_file",)
        case "error":
            _assert_failed(heard, timed_out=fault.startswith("silent"))
            assert (receipt.status, receipt.http_status) == ("failed", heard.status)
            assert (receipt.usage.output_tokens, receipt.cost_micros) == (0, 0)
        case "breaks":
            _assert_broken_in_band(heard, shape)
            assert receipt.status == "truncated"
            assert receipt.usage.estimated
            assert 0 < (receipt.cost_micros or 0) < 2 * COST
    assert len(receipt.attempts) == 1


@upstreams
@_each(list(FAULTS))
async def test_a_fault_is_a_right_answer_or_a_clean_error(upstream: Upstream, fault: Fault) -> None:
    """Billed once, on one receipt, with the connection let go and nothing held."""
    async with staged(upstream, lambda _: answer(upstream, fault)) as on:
        for shape, stream in CLIENTS:
            with asked_by(shape, stream):
                heard = await on.ask(shape, stream=stream)
                receipt = await on.close_books(heard, shape)
                _assert_outcome(upstream, fault, (shape, stream), heard, receipt)
                if fault.startswith("silent"):
                    async with asyncio.timeout(1):
                        await on.sick.requests[-1].closed.wait()
        assert len(on.sick.requests) == len(CLIENTS)


@upstreams
async def test_nobody_listens(upstream: Upstream) -> None:
    """A clean error, though the address is right."""
    with refusing_base_url() as base_url:
        catalog = catalog_at(base_url, *SICK, shape=upstream)
        async with running_gateway(catalog, SETUP) as gateway, aiohttp.ClientSession() as http:
            for at, (shape, stream) in enumerate(CLIENTS):
                with asked_by(shape, stream):
                    more = {"model": f"m{at}"}
                    heard = await ask(http, gateway, shape, stream=stream, more=more)
                    assert (heard.status, "refused" in heard.error) == (502, True)
            receipts = [closing.receipt for closing in gateway.books.closings]
    assert [(r.status, r.cost_micros) for r in receipts] == [("failed", 0)] * len(CLIENTS)


@upstreams
async def test_a_burst_of_failures_is_outlived(upstream: Upstream) -> None:
    """Two failures and an answer are one answer and one bill."""

    def script(asked: Asked) -> Answer:
        failures = (refusal(upstream, 500, "try later"), refusal(upstream, 503, "try later"))
        return (*failures, answer(upstream))[asked.number % 3]

    patient = replace(SETUP, limits=Limits(attempts=3, tries_each=3, backoff=0.0))
    async with staged(upstream, script, patient) as on:
        for shape, stream in CLIENTS:
            with asked_by(shape, stream):
                heard = await on.ask(shape, stream=stream)
                receipt = await on.close_books(heard, shape)
                _assert_right(heard)
                assert [attempt.status for attempt in receipt.attempts] == [500, 503, 200]
                assert (receipt.usage, receipt.cost_micros) == (USED, COST)


@upstreams
@_each([fault for fault in FAULTS if outcome("chat", fault, stream=True) == "error"])
async def test_somebody_else_answers_where_nothing_was_seen(
    upstream: Upstream, fault: Fault
) -> None:
    """Body and receipt name who answered; the failed attempt is there, and costs nothing."""
    async with staged(upstream, lambda _: answer(upstream, fault), ELSEWHERE) as on:
        for at, (shape, stream) in enumerate(CLIENTS):
            with asked_by(shape, stream):
                heard = await on.ask(shape, stream=stream)
                receipt = await on.close_books(heard, shape)
                assert (heard.status, heard.text, heard.error) == (200, "All is well.", "")
                assert b'"deployment":"well/n"' in heard.raw
                assert b'"model":"n"' in heard.raw
                assert f'"model":"m{at}"'.encode() not in heard.raw
                tried = [one.deployment for one in receipt.attempts]
                assert tried == [f"sick/m{at}", "well/n"]
                assert receipt.routing is not None
                served = receipt.routing.deployment, receipt.routing.fallback
                assert served == ("well/n", True)
                assert (receipt.usage, receipt.cost_micros) == (USED, COST_ELSEWHERE)


@upstreams
@_each([fault for fault in FAULTS if outcome("chat", fault, stream=True) == "breaks"])
async def test_nobody_else_goes_on_where_something_was_seen(
    upstream: Upstream, fault: Fault
) -> None:
    """The client reads the error of whoever began, not that of a second one."""
    async with staged(upstream, lambda _: answer(upstream, fault), ELSEWHERE) as on:
        for shape in SHAPES:
            with asked_by(shape, stream=True):
                heard = await on.ask(shape, stream=True)
                receipt = await on.close_books(heard, shape)
                _assert_broken_in_band(heard, shape)
                if fault == "error in band":
                    assert heard.error in {"overloaded by script", "scripted failure"}
                assert [one.deployment.partition("/")[0] for one in receipt.attempts] == ["sick"]
        assert len(on.well.requests) == len(SHAPES)


WAITS: dict[str, tuple[dict[str, str], str | None, bool]] = {
    "seconds": ({"Retry-After": "17"}, "17", True),
    "part of a second": ({"Retry-After": "16.2"}, "17", True),
    "milliseconds": ({"Retry-After-Ms": "16500", "Retry-After": "99"}, "17", True),
    "hours": ({"Retry-After": "7200"}, "7200", False),
    "a date": ({"Retry-After": "Fri, 01 Jan 2100 00:00:00 GMT"}, "many", False),
    "a date of long ago": ({"Retry-After": "Fri, 01 Jan 1999 00:00:00 GMT"}, "0", True),
    "nothing": ({}, None, True),
    "words": ({"Retry-After": "soon"}, None, True),
    "less than nothing": ({"Retry-After": "-5"}, None, True),
    "no number": ({"Retry-After": "nan"}, None, True),
    "no date": ({"Retry-After": "Fri, 99 Foo 2100 00:00:00 GMT"}, None, True),
    "beyond all numbers": ({"Retry-After": "9" * 400}, None, True),
}
"""What an upstream says of the wait; what the client is told, and whether it may try again."""


@upstreams
async def test_a_rate_limit_is_passed_on_in_whatever_form_it_names_the_wait(
    upstream: Upstream,
) -> None:
    """Status, words and wait; a wait that SDKs would not wait for is marked as final."""
    asking = [(name, client) for client in CLIENTS for name in WAITS]
    models = [replace(deployment(f"p/m{at}"), price=WELL.price) for at in range(len(asking))]

    def script(asked: Asked) -> Answer:
        name, _ = asking[int(asked.model[1:])]
        return refusal(upstream, 429, "slow down", WAITS[name][0])

    setup = replace(SETUP, limits=Limits(attempts=1))
    async with server_of(upstream, script) as server, aiohttp.ClientSession() as http:
        catalog = catalog_at(server.base_url, *models, shape=upstream)
        async with running_gateway(catalog, setup) as gateway:
            for at, (name, (shape, stream)) in enumerate(asking):
                more = {"model": f"m{at}"}
                heard = await ask(http, gateway, shape, stream=stream, more=more)
                after = heard.headers.get("retry-after")
                after = "many" if after and int(after) > 10**9 else after
                may = heard.headers.get("x-should-retry") != "false"
                with asked_by(shape, stream):
                    assert (heard.status, heard.error) == (429, "slow down")
                    assert (name, after, may) == (name, *WAITS[name][1:])
            receipts = list(gateway.receipts.receipts.values())
    assert {(r.http_status, r.cost_micros) for r in receipts} == {(429, 0)}
    assert len(server.requests) == len(receipts) == len(asking)
