"""The gateway over HTTP, with a scripted model server behind it."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from turnout.core.ids import ModelId
from turnout.core.inference import Objective
from turnout.core.money import Micros, Price
from turnout.core.policies import Policy, PoolRule, SessionCaps, ToolRule
from turnout.gateway.access import shared_key
from turnout.gateway.app import AppLimits
from turnout.gateway.catalog import Catalog, StatedQuality
from turnout.store.books import BooksStore
from turnout.store.database import open_database
from turnout.testing.exchange import deployment
from turnout.testing.gateway import GatewaySetup, RunningGateway, catalog_at, running_gateway
from turnout.testing.model_server import Call, ScriptedModelServer, Turn

HELLO = [{"role": "user", "content": "Hello"}]
READ_FILE = {
    "type": "function",
    "function": {
        "name": "read_file",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    },
}
PRICED = replace(deployment("p/m"), price=Price(input=1_000_000, output=2_000_000))


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    """Yield a client for the gateway."""
    async with aiohttp.ClientSession() as session:
        yield session


async def _post(
    http: aiohttp.ClientSession, gateway: RunningGateway, **fields: Any
) -> tuple[int, Any]:
    headers = fields.pop("headers", {})
    body = {"model": "auto", "messages": HELLO, **fields}
    url = f"{gateway.base_url}/chat/completions"
    async with http.post(url, json=body, headers=headers) as answer:
        return answer.status, await answer.json()


def _strong_and_fast(base_url: str) -> Catalog:
    strong = replace(
        deployment("p/strong"),
        quality={"coding": StatedQuality(0.9, "stated")},
        stated_ttft_ms=4_000,
        stated_tokens_per_second=20,
    )
    fast = replace(
        deployment("p/fast"),
        quality={"coding": StatedQuality(0.4, "stated")},
        stated_ttft_ms=100,
        stated_tokens_per_second=200,
    )
    return catalog_at(base_url, strong, fast)


async def test_an_answer_comes_with_its_report_and_its_receipt(http: aiohttp.ClientSession) -> None:
    """The id of the answer reads back what it cost and why."""
    async with (
        ScriptedModelServer([Turn("Hi.")]) as server,
        running_gateway(catalog_at(server.base_url, PRICED)) as gateway,
    ):
        status, body = await _post(http, gateway, routing={"session": "run-1"}, top_k=5)
        async with http.get(f"{gateway.base_url}/requests/{body['id']}") as answer:
            receipt = await answer.json()
    assert status == 200
    assert body["choices"][0]["message"]["content"] == "Hi."
    assert body["routing"]["deployment"] == "p/m"
    assert body["routing"]["cost_micros"] == receipt["cost_micros"] == 140
    assert receipt["session"] == "run-1"
    assert receipt["usage"]["output_tokens"] == 20
    sent = server.requests[0].body
    assert (sent["top_k"], sent["model"]) == (5, "m")
    assert "routing" not in sent


@pytest.mark.parametrize("prefix", ["/v1", "/api/v1/inference", "/api/v1/inference/v1"])
async def test_every_prefix_serves_the_same_routes(
    http: aiohttp.ClientSession, prefix: str
) -> None:
    """Base URLs with and without `/v1` are both in use."""
    async with (
        ScriptedModelServer([Turn("Hi.")]) as server,
        running_gateway(catalog_at(server.base_url, PRICED)) as gateway,
    ):
        root = gateway.base_url.removesuffix("/v1")
        body = {"model": "m", "messages": HELLO}
        async with http.post(f"{root}{prefix}/chat/completions", json=body) as answer:
            assert answer.status == 200
            assert answer.headers["x-request-id"] == (await answer.json())["id"]
        async with http.get(f"{root}{prefix}/models?limit=2") as answer:
            listed = await answer.json()
    assert listed["object"] == "list"
    assert [model["id"] for model in listed["data"]] == ["auto", "m"]


async def test_the_doors_without_a_key_answer(http: aiohttp.ClientSession) -> None:
    """Clients look whether anybody is there before they send a key."""
    setup = GatewaySetup(authenticate=shared_key("secret"))
    async with running_gateway(Catalog(), setup) as gateway:
        root = gateway.base_url.removesuffix("/v1")
        async with http.head(f"{root}/") as hello, http.get(f"{root}/healthz") as health:
            assert (hello.status, health.status) == (200, 200)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nowhere", 404), ("GET", "/chat/completions", 405), ("GET", "/requests/req-0", 404)],
)
async def test_what_is_not_there_is_an_error_of_the_same_shape(
    http: aiohttp.ClientSession, method: str, path: str, status: int
) -> None:
    """SDKs parse every error body."""
    async with (
        running_gateway(Catalog()) as gateway,
        http.request(method, f"{gateway.base_url}{path}") as answer,
    ):
        assert answer.status == status
        assert set((await answer.json())["error"]) == {"message", "type", "param", "code"}


@pytest.mark.cases
async def test_a_wrong_key_is_refused_and_never_repeated(http: aiohttp.ClientSession) -> None:
    """Not in the body, whatever was sent."""
    setup = GatewaySetup(authenticate=shared_key("secret"))
    async with running_gateway(Catalog(), setup) as gateway:
        for headers in ({}, {"authorization": "Bearer sk-wrong"}, {"x-api-key": "sk-wrong"}):
            status, body = await _post(http, gateway, headers=headers)
            assert (status, body["error"]["code"]) == (401, "invalid_api_key")
            assert "sk-wrong" not in str(body)
        status, _ = await _post(http, gateway, headers={"api-key": "secret"})
        assert status == 503


async def test_without_a_key_web_pages_are_kept_out(http: aiohttp.ClientSession) -> None:
    """A browser reaches loopback for whichever page it shows."""
    async with running_gateway(Catalog()) as gateway:
        for headers in ({"origin": "https://evil.example"}, {"host": "evil.example:80"}):
            status, body = await _post(http, gateway, headers=headers)
            assert (status, body["error"]["code"]) == (403, "origin_not_allowed")


async def test_receipts_are_only_for_the_key_that_made_the_request(
    http: aiohttp.ClientSession,
) -> None:
    """Another caller learns nothing, not even that the request exists."""
    keys = {"Bearer a": shared_key("a", name="a"), "Bearer b": shared_key("b", name="b")}
    setup = GatewaySetup(authenticate=lambda headers: keys[headers["authorization"]](headers))
    async with (
        ScriptedModelServer([Turn("Hi.")]) as server,
        running_gateway(catalog_at(server.base_url, PRICED), setup) as gateway,
    ):
        _, body = await _post(http, gateway, headers={"authorization": "Bearer a"})
        statuses = []
        for key in keys:
            url = f"{gateway.base_url}/requests/{body['id']}"
            async with http.get(url, headers={"authorization": key}) as answer:
                statuses.append(answer.status)
    assert statuses == [200, 404]


async def test_a_body_beyond_the_cap_is_refused_as_it_comes(http: aiohttp.ClientSession) -> None:
    """With or without a declared length."""
    setup = GatewaySetup(app_limits=AppLimits(body_bytes=1_000))

    async def parts() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * 100

    async with running_gateway(Catalog(), setup) as gateway:
        url = f"{gateway.base_url}/chat/completions"
        for data in (b"x" * 2_000, parts()):
            async with http.post(url, data=data) as answer:
                assert answer.status == 413
                assert (await answer.json())["error"]["code"] == "request_too_large"


async def test_an_unknown_model_is_named_with_those_that_come_near(
    http: aiohttp.ClientSession,
) -> None:
    """404, and a hint instead of a list."""
    catalog = catalog_at("http://127.0.0.1:1/v1", deployment("p/qwen3-coder"))
    async with running_gateway(catalog) as gateway:
        status, body = await _post(http, gateway, model="qwen-coder")
    assert (status, body["error"]["code"]) == (404, "model_not_found")
    assert "qwen3-coder" in body["error"]["message"]
    assert gateway.receipt().status == "refused"


async def test_where_nobody_is_eligible_every_candidate_says_why(
    http: aiohttp.ClientSession,
) -> None:
    """The mend depends on the reason."""
    catalog = catalog_at(
        "http://127.0.0.1:1/v1", deployment("p/m"), replace(deployment("p/n"), tools="unknown")
    )
    setup = GatewaySetup(Policy(pool=PoolRule((ModelId("n"),))))
    async with running_gateway(catalog, setup) as gateway:
        status, body = await _post(http, gateway, tools=[READ_FILE])
    assert (status, body["error"]["code"]) == (503, "no_eligible_model")
    assert "p/m: outside the pool" in body["error"]["message"]
    assert "p/n: tool support unknown" in body["error"]["message"]


async def test_a_tool_outside_an_enforced_list_is_refused_before_any_model(
    http: aiohttp.ClientSession,
) -> None:
    """403 naming the tool; no decision was made."""
    setup = GatewaySetup(Policy(tools=ToolRule("enforce", ("list_files",))))
    async with (
        ScriptedModelServer() as server,
        running_gateway(catalog_at(server.base_url, PRICED), setup) as gateway,
    ):
        status, body = await _post(http, gateway, tools=[READ_FILE])
    assert (status, body["error"]["code"]) == (403, "tool_not_allowed")
    assert "read_file" in body["error"]["message"]
    receipt = gateway.receipt()
    assert (receipt.status, receipt.decision, receipt.tools_outside) == (
        "refused",
        None,
        ("read_file",),
    )


async def test_a_dry_run_notes_the_tool_and_serves(http: aiohttp.ClientSession) -> None:
    """The list is completed from such receipts."""
    setup = GatewaySetup(Policy(tools=ToolRule("dry_run", ("list_files",))))
    async with (
        ScriptedModelServer([Turn("Hi.")]) as server,
        running_gateway(catalog_at(server.base_url, PRICED), setup) as gateway,
    ):
        status, _ = await _post(http, gateway, tools=[READ_FILE])
    assert (status, gateway.receipt().tools_outside) == (200, ("read_file",))


async def test_the_request_cap_of_a_session_ends_it(http: aiohttp.ClientSession) -> None:
    """429 that tells SDKs not to retry; other sessions go on."""
    setup = GatewaySetup(Policy(session=SessionCaps(max_requests=2)))
    async with (
        ScriptedModelServer([Turn("Hi.")] * 3) as server,
        running_gateway(catalog_at(server.base_url, PRICED), setup) as gateway,
    ):
        for _ in range(2):
            assert (await _post(http, gateway, routing={"session": "s"}))[0] == 200
        body = {"model": "auto", "messages": HELLO, "routing": {"session": "s"}}
        async with http.post(f"{gateway.base_url}/chat/completions", json=body) as answer:
            assert answer.status == 429
            assert answer.headers["x-should-retry"] == "false"
            assert (await answer.json())["error"]["code"] == "session_request_cap"
        assert (await _post(http, gateway, routing={"session": "t"}))[0] == 200
    assert len(server.requests) == 3


async def test_the_spend_cap_of_a_session_ends_it_with_402(http: aiohttp.ClientSession) -> None:
    """What earlier calls cost counts, to the micro-dollar."""
    setup = GatewaySetup(Policy(session=SessionCaps(max_spend=Micros(140))))
    async with (
        ScriptedModelServer([Turn("Hi.")]) as server,
        running_gateway(catalog_at(server.base_url, PRICED), setup) as gateway,
    ):
        assert (await _post(http, gateway, routing={"session": "s"}))[0] == 200
        status, body = await _post(http, gateway, routing={"session": "s"})
        totals = await gateway.books.totals("local", "s")
    assert (status, body["error"]["code"]) == (402, "session_spend_cap")
    assert (totals.requests, totals.spend) == (1, 140)


async def test_an_unpriced_model_does_not_serve_under_a_spend_cap(
    http: aiohttp.ClientSession,
) -> None:
    """Unless the policy allows it."""
    capped = Policy(session=SessionCaps(max_spend=Micros(10)))
    statuses = []
    async with ScriptedModelServer([Turn("Hi.")]) as server:
        catalog = catalog_at(server.base_url, deployment("p/m"))
        for policy in (capped, replace(capped, allow_unpriced=True)):
            async with running_gateway(catalog, GatewaySetup(policy)) as gateway:
                statuses.append((await _post(http, gateway))[0])
    assert statuses == [403, 200]
    assert gateway.receipt().cost_micros is None


@pytest.mark.parametrize(("optimize", "model"), [("quality", "strong"), ("latency", "fast")])
async def test_each_call_goes_where_its_objective_points(
    http: aiohttp.ClientSession, optimize: Objective, model: str
) -> None:
    """The same pool, two kinds of call."""
    async with (
        ScriptedModelServer([Turn("Hi.")]) as server,
        running_gateway(_strong_and_fast(server.base_url)) as gateway,
    ):
        _, body = await _post(http, gateway, routing={"optimize": optimize, "task": "coding"})
    assert body["model"] == body["routing"]["model"] == server.requests[0].model == model


@pytest.mark.cases
async def test_a_tool_result_goes_to_the_model_that_asked_for_it(
    http: aiohttp.ClientSession,
) -> None:
    """Whatever the second call is routed for; without an open call it is free again."""
    call = Turn(calls=(Call("read_file", {"path": "a"}),))
    async with (
        ScriptedModelServer([call, Turn("Done."), Turn("Again.")]) as server,
        running_gateway(_strong_and_fast(server.base_url)) as gateway,
    ):
        quality = {"optimize": "quality", "task": "coding", "session": "s"}
        _, first = await _post(http, gateway, tools=[READ_FILE], routing=quality)
        message = first["choices"][0]["message"]
        result = {
            "role": "tool",
            "tool_call_id": message["tool_calls"][0]["id"],
            "content": "text",
        }
        loop = {"tools": [READ_FILE], "routing": {**quality, "optimize": "latency"}}
        _, second = await _post(http, gateway, messages=[*HELLO, message, result], **loop)
        _, third = await _post(http, gateway, **loop)
    assert [r["routing"]["model"] for r in (first, second, third)] == ["strong", "strong", "fast"]
    assert [r["routing"]["sticky"] for r in (first, second, third)] == [False, True, False]
    assert server.history_faults == []


async def test_a_policy_by_another_name_is_refused(http: aiohttp.ClientSession) -> None:
    """A request must not run under rules that it did not ask for."""
    async with running_gateway(Catalog()) as gateway:
        status, body = await _post(http, gateway, routing={"policy": "other"})
    assert (status, body["error"]["param"]) == (404, "routing.policy")


@pytest.mark.cases
async def test_without_counts_a_stream_is_estimated_like_a_whole_answer(
    http: aiohttp.ClientSession,
) -> None:
    """The same answer costs the same, however it was delivered."""
    turn = Turn("Some text.", calls=(Call("read_file", {"path": "a"}),), fault="no_usage")
    seen = []
    async with (
        ScriptedModelServer([turn, turn]) as server,
        running_gateway(catalog_at(server.base_url, PRICED)) as gateway,
    ):
        for stream in (False, True):
            body = {"model": "auto", "messages": HELLO, "tools": [READ_FILE], "stream": stream}
            async with http.post(f"{gateway.base_url}/chat/completions", json=body) as answer:
                await answer.read()
            seen.append(gateway.receipt().usage)
    assert seen[0].output_tokens == seen[1].output_tokens > 0
    assert seen[0].estimated
    assert seen[1].estimated


@pytest.mark.parametrize("limit", ["-1", "1.5", "x", "9" * 5_000, "\u0663"])
async def test_a_limit_that_is_no_number_is_refused(
    http: aiohttp.ClientSession, limit: str
) -> None:
    """400, whatever was sent."""
    async with (
        running_gateway(Catalog()) as gateway,
        http.get(f"{gateway.base_url}/models", params={"limit": limit}) as answer,
    ):
        assert answer.status == 400
        assert (await answer.json())["error"]["param"] == "limit"


@pytest.mark.cases
@pytest.mark.parametrize("max_tokens", [100, 4_096])
async def test_fifty_calls_at_once_exceed_no_cap(
    http: aiohttp.ClientSession, tmp_path: Path, max_tokens: int
) -> None:
    """Each reserves the most it may cost: those that would not fit are refused, none is lost."""
    capped = Policy(session=SessionCaps(max_requests=20, max_spend=Micros(1_000)))
    async with (
        ScriptedModelServer(lambda _: Turn("Hi.", delay=0.2)) as server,
        open_database(tmp_path / "turnout.db") as database,
        running_gateway(
            catalog_at(server.base_url, PRICED),
            GatewaySetup(capped, books=BooksStore(database)),
        ) as gateway,
    ):

        async def call() -> int:
            body = {"model": "m", "messages": HELLO, "max_tokens": max_tokens}
            routed = {**body, "routing": {"session": "s"}}
            async with http.post(f"{gateway.base_url}/chat/completions", json=routed) as answer:
                return answer.status

        statuses = Counter(await asyncio.gather(*(call() for _ in range(50))))
        totals = await BooksStore(database).totals("local", "s")
    most = -(-1_000 // (2 * max_tokens))
    assert statuses == {200: most, 402: 50 - most}
    assert (totals.requests, totals.spend) == (most, most * 140)
