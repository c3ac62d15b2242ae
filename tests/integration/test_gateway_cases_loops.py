"""Tool loops in every shape: who goes on with them, and what of them reaches the upstream."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import aiohttp
import orjson
import pytest
from tests.integration.loops import Called, call_ids, said
from tests.integration.spoken import SHAPES, Spoken, ask
from tests.integration.upstreams import (
    TEXT,
    UPSTREAMS,
    Answer,
    Asked,
    Server,
    Upstream,
    answer,
    refusal,
    server_of,
)

from turnout.core.json import JsonObject
from turnout.core.money import Price
from turnout.core.policies import Policy
from turnout.gateway.catalog import Catalog, Deployment, StatedQuality
from turnout.gateway.stages.attempts.fallback import Limits
from turnout.testing.exchange import deployment
from turnout.testing.gateway import GatewaySetup, RunningGateway, catalog_at, running_gateway
from turnout.testing.messages import MessagesRefusal
from turnout.testing.model_server import Refusal, ScriptedModelServer

pytestmark = pytest.mark.cases

shapes = pytest.mark.parametrize("shape", SHAPES)
upstreams = pytest.mark.parametrize("upstream", UPSTREAMS, ids=lambda name: f"up-{name}")
QUICK = GatewaySetup(limits=Limits(attempts=3, tries_each=1, backoff=0.0))
GOOD = {"coding": StatedQuality(0.9, "stated")}
POOR = {"coding": StatedQuality(0.3, "stated")}
DEAR, CHEAP = Price(9_000_000, 9_000_000), Price(1_000_000, 1_000_000)
STRONG = replace(deployment("a/strong"), price=DEAR, quality=GOOD)
AGAIN = replace(deployment("b/strong"), price=DEAR, quality=GOOD)
OTHER = replace(deployment("c/other"), price=CHEAP, quality=POOR)
QUALITY: JsonObject = {"routing": {"optimize": "quality", "task": "coding"}}
COST: JsonObject = {"routing": {"optimize": "cost", "task": "coding"}}


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    """Yield a client for the gateway."""
    async with aiohttp.ClientSession() as session:
        yield session


def _catalog(*served: tuple[Server, Deployment, Upstream]) -> Catalog:
    catalog = Catalog()
    for server, deployed, upstream in served:
        one = catalog_at(server.base_url, deployed, shape=upstream)
        catalog = Catalog({**catalog.providers, **one.providers}, (*catalog.deployments, deployed))
    return catalog


def _in_turn(*answers: Answer) -> Callable[[Asked], Answer]:
    return lambda asked: answers[asked.number]


def _faults(server: Server) -> list[str]:
    return server.history_faults if isinstance(server, ScriptedModelServer) else server.faults


async def _call(
    http: aiohttp.ClientSession, gateway: RunningGateway, shape: Spoken
) -> tuple[Called, ...]:
    """Let the best model begin a loop; return its calls as the client sends them back."""
    heard = await ask(http, gateway, shape, stream=False, tools=True, more=QUALITY)
    return tuple(Called(id_) for id_ in call_ids(shape, heard))


@shapes
@upstreams
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_result_goes_to_the_model_that_called(
    http: aiohttp.ClientSession, shape: Spoken, upstream: Upstream, stream: bool
) -> None:
    """Whatever the request is routed for, and with no session; without an open call it is free."""
    strong = server_of(upstream, lambda asked: answer(upstream, calls=not asked.number))
    other = server_of("chat", lambda _: answer("chat", calls=False))
    async with strong, other:
        catalog = _catalog((strong, STRONG, upstream), (other, OTHER, "chat"))
        async with running_gateway(catalog, QUICK) as gateway:
            calls = await _call(http, gateway, shape)
            more = {**said(shape, *calls, words="I look."), **COST}
            second = await ask(http, gateway, shape, stream=stream, tools=True, more=more)
            sticky = gateway.receipt()
            third = await ask(http, gateway, shape, stream=stream, tools=True, more=COST)
            free = gateway.receipt()
    assert [(h.status, h.text, h.error) for h in (second, third)] == [(200, TEXT, "")] * 2
    assert sticky.routing is not None
    assert free.routing is not None
    assert (sticky.routing.deployment, sticky.routing.sticky) == ("a/strong", True)
    assert (free.routing.deployment, free.routing.sticky) == ("c/other", False)
    assert _faults(strong) == _faults(other) == []


@shapes
@upstreams
async def test_an_open_call_goes_to_the_same_model_elsewhere_or_to_nobody(
    http: aiohttp.ClientSession, shape: Spoken, upstream: Upstream
) -> None:
    """Where its provider is down; another model never sees it."""
    down = refusal(upstream, 500, "down")
    first = server_of(upstream, lambda asked: down if asked.number else answer(upstream))
    second = server_of(
        "chat", _in_turn(answer("chat", calls=False), *[refusal("chat", 500, "down")] * 3)
    )
    third = server_of("chat", lambda _: answer("chat"))
    async with first, second, third:
        catalog = _catalog(
            (first, STRONG, upstream), (second, AGAIN, "chat"), (third, OTHER, "chat")
        )
        async with running_gateway(catalog, QUICK) as gateway:
            more = {**QUALITY, "model": "a/strong"}
            began = await ask(http, gateway, shape, stream=False, tools=True, more=more)
            calls = [Called(id_) for id_ in call_ids(shape, began)]
            more = {**said(shape, *calls), **COST}
            elsewhere = await ask(http, gateway, shape, stream=True, tools=True, more=more)
            routing = gateway.receipt().routing
            nobody = await ask(http, gateway, shape, stream=True, tools=True, more=more)
        assert len(third.requests) == 0
    assert (elsewhere.status, elsewhere.text) == (200, TEXT)
    assert routing is not None
    assert (routing.deployment, routing.sticky) == ("b/strong", True)
    assert nobody.status in {502, 503}
    assert nobody.error
    assert _faults(second) == []


@shapes
@upstreams
async def test_a_call_that_was_cut_leaves_the_loop_where_it_is(
    http: aiohttp.ClientSession, shape: Spoken, upstream: Upstream
) -> None:
    """The client hears of it and may try again: at the same model alone."""
    script = _in_turn(
        answer(upstream), answer(upstream, "cut in a call"), answer(upstream, calls=False)
    )
    strong, other = server_of(upstream, script), server_of("chat", lambda _: answer("chat"))
    async with strong, other:
        catalog = _catalog((strong, STRONG, upstream), (other, OTHER, "chat"))
        async with running_gateway(catalog, QUICK) as gateway:
            calls = await _call(http, gateway, shape)
            more = {**said(shape, *calls), **COST}
            cut = await ask(http, gateway, shape, stream=True, tools=True, more=more)
            receipt = gateway.receipt()
            again = await ask(http, gateway, shape, stream=True, tools=True, more=more)
        assert len(other.requests) == 0
    assert (cut.status, cut.finish, bool(cut.error)) == (200, "", True)
    assert (receipt.status, receipt.tools_called) == ("truncated", ())
    assert (again.status, again.text, again.error) == (200, TEXT, "")


FILTERED: dict[Upstream, Answer] = {
    "chat": Refusal(
        400, raw=b'{"error":{"message":"filtered","type":"x","code":"content_filter"}}'
    ),
    "messages": MessagesRefusal(400, "content_policy_violation", "filtered"),
    "responses": Refusal(
        400, raw=b'{"error":{"message":"filtered","type":"x","code":"content_policy_violation"}}'
    ),
}


@shapes
@upstreams
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("reroutes", [False, True], ids=["stays", "goes-on"])
async def test_what_a_filter_refused_goes_elsewhere_only_by_policy(
    http: aiohttp.ClientSession, shape: Spoken, upstream: Upstream, stream: bool, reroutes: bool
) -> None:
    """By default the client reads the filter's own words."""
    first = server_of(upstream, lambda _: FILTERED[upstream])
    other = server_of("chat", lambda _: answer("chat", calls=False))
    setup = replace(QUICK, policy=Policy(reroute_refusals=reroutes))
    async with first, other:
        catalog = _catalog((first, STRONG, upstream), (other, OTHER, "chat"))
        async with running_gateway(catalog, setup) as gateway:
            heard = await ask(http, gateway, shape, stream=stream, more=QUALITY)
        assert len(other.requests) == reroutes
    if reroutes:
        assert (heard.status, heard.text) == (200, TEXT)
    else:
        assert (heard.status, heard.error) == (400, "filtered")


def _words(shape: Spoken) -> list[object]:
    return ["", None, [], "So."] if shape == "chat" else ["", "So."]


HISTORIES = [
    pytest.param(shape, words, id=f"{shape}-{words!r}")
    for shape in SHAPES
    for words in _words(shape)
]


@upstreams
@pytest.mark.parametrize(("shape", "words"), HISTORIES)
async def test_a_history_reaches_every_upstream_whole_and_in_order(
    http: aiohttp.ClientSession, shape: Spoken, words: object, upstream: Upstream
) -> None:
    """Two calls beside empty words, their results the other way round, and what came after."""
    calls = (Called("call_1", "a.py", "first"), Called("call_2", "b.py", "second"))
    async with server_of(upstream, lambda _: answer(upstream, calls=False)) as server:
        catalog = _catalog((server, STRONG, upstream))
        async with running_gateway(catalog, QUICK) as gateway:
            more = said(shape, *calls, words=words, after="And now?", backwards=True)
            heard = await ask(http, gateway, shape, stream=False, tools=True, more=more)
    assert (heard.status, heard.text, _faults(server)) == (200, TEXT, [])
    raw = orjson.dumps(server.requests[0].body).decode()
    assert all(said in raw for said in ("Hello", "a.py", "b.py", "first", "second", "And now?"))
    assert raw.index("a.py") < raw.index("b.py") < raw.index("And now?")
    assert '"index"' not in raw
    assert server.requests[0].body.get("store") in (None, False)


BROKEN_HISTORIES: dict[str, dict[str, Any]] = {
    "a call without its result": {"calls": [Called("call_1"), Called("call_2", result=None)]},
    "a result without its call": {"calls": [Called("call_1"), Called("call_2", made=False)]},
    "a result and nothing else": {"calls": [Called("call_1", made=False)]},
    "words between call and result": {"calls": [Called("call_1")], "between": "Hurry."},
    "a call and then words": {"calls": [Called("call_1", result=None)], "after": "Well?"},
}


@upstreams
@shapes
@pytest.mark.parametrize("broken", BROKEN_HISTORIES)
async def test_a_history_that_does_not_hold_together_is_mended_or_refused_here(
    http: aiohttp.ClientSession, shape: Spoken, broken: str, upstream: Upstream
) -> None:
    """A provider's complaint would be of a request that the client never wrote.

    Where both sides speak the same shape it is the client's own request, and theirs to judge.
    """
    form = dict(BROKEN_HISTORIES[broken])
    calls = form.pop("calls")
    async with server_of(upstream, lambda _: answer(upstream, calls=False)) as server:
        catalog = _catalog((server, STRONG, upstream))
        async with running_gateway(catalog, QUICK) as gateway:
            more = said(shape, *calls, **form)
            heard = await ask(http, gateway, shape, stream=True, tools=True, more=more)
    if shape == upstream != "responses":
        assert heard.status in {200, 400}
        return
    assert _faults(server) == []
    assert heard.status == (200 if server.requests else 400)
    assert (heard.text if server.requests else heard.error) != ""
    if broken.startswith("words"):
        assert heard.status == 200


@upstreams
@shapes
async def test_the_same_request_is_the_same_bytes_upstream(
    http: aiohttp.ClientSession, shape: Spoken, upstream: Upstream
) -> None:
    """Caches of prompts go by them: nothing in a body is of its moment, and no field moves."""
    more = said(shape, Called("call_1", "a.py"), Called("call_2", "b.py"), after="And now?")
    async with server_of(upstream, lambda _: answer(upstream, calls=False)) as server:
        catalog = _catalog((server, STRONG, upstream))
        async with running_gateway(catalog, QUICK) as gateway:
            for _ in range(3):
                heard = await ask(http, gateway, shape, stream=False, tools=True, more=more)
                assert heard.status == 200
    sent = [orjson.dumps(request.body) for request in server.requests]
    assert len(sent) == 3
    assert len(set(sent)) == 1
