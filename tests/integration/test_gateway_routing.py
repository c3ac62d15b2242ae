"""Routing through a whole gateway: health, warm caches, evidence, and what clients see of them."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest

from turnout.core.clock import SystemClock
from turnout.core.govern.evidence import QualityResult
from turnout.core.ids import DeploymentId
from turnout.core.money import Price
from turnout.core.policies import EvidenceBar, Policy
from turnout.core.usage import Usage
from turnout.gateway.catalog import Catalog, Deployment
from turnout.gateway.measure.circuits import CircuitLimits, Circuits
from turnout.gateway.measure.live import LiveEvidence
from turnout.gateway.stages.attempts.fallback import Limits
from turnout.testing.exchange import deployment
from turnout.testing.gateway import GatewaySetup, catalog_at, running_gateway
from turnout.testing.model_server import (
    Call,
    RecordedRequest,
    Refusal,
    Script,
    ScriptedModelServer,
    Turn,
)

QUICK = Limits(attempts=2, tries_each=1, backoff=0.01)
A = replace(deployment("a/m"), price=Price(1_000_000, 1_000_000))
B = replace(deployment("b/m"), price=Price(2_000_000, 2_000_000))
N = replace(deployment("a/n"), price=Price(3_000_000, 3_000_000))
TOOL = {"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    """Yield a client for the gateway."""
    async with aiohttp.ClientSession() as session:
        yield session


async def post(
    http: aiohttp.ClientSession, base_url: str, **more: Any
) -> tuple[int, Mapping[str, str], Any]:
    """Ask for a chat completion; return status, headers and body."""
    body = {"model": "auto", "messages": [{"role": "user", "content": "Hi"}], **more}
    async with http.post(f"{base_url}/chat/completions", json=body) as answer:
        return answer.status, answer.headers, await answer.json()


def two_places(
    first: ScriptedModelServer, second: ScriptedModelServer, *more: Deployment
) -> Catalog:
    """Return a catalog whose provider `a` is the first server and `b` the second."""
    one = catalog_at(first.base_url, A, *more)
    two = catalog_at(second.base_url, B)
    return Catalog({**one.providers, **two.providers}, (A, B, *more))


async def test_one_that_keeps_failing_is_left_alone_and_nobody_notices(
    http: aiohttp.ClientSession,
) -> None:
    """The other serves; after eight failures the sick one is not asked again, and is told of."""
    told: list[tuple[DeploymentId, str]] = []
    clock = SystemClock()
    circuits = Circuits(clock, CircuitLimits(lost=0.0), lambda d, why: told.append((d, why)))
    evidence = LiveEvidence(clock, circuits=circuits)
    async with (
        ScriptedModelServer(lambda _: Refusal(500)) as sick,
        ScriptedModelServer(lambda _: Turn("Hello")) as well,
        running_gateway(
            two_places(sick, well), GatewaySetup(evidence=evidence, limits=QUICK)
        ) as gateway,
    ):
        for _ in range(12):
            status, _, body = await post(http, gateway.base_url, routing={"optimize": "cost"})
            assert status == 200
            assert body["routing"]["deployment"] == "b/m"
        assert len(sick.requests) == 8
        assert told == [("a/m", "8 requests failed in a row, the last with status 500")]
        decision = gateway.receipt().decision
    assert decision is not None
    assert decision.order == ("b/m",)
    assert (decision.candidates[1].dropped or "").startswith("8 requests failed in a row")


async def test_where_nobody_else_is_there_the_client_is_told_when_to_come_back(
    http: aiohttp.ClientSession,
) -> None:
    """503 with the reason and a Retry-After; the sick server gets its rest."""
    async with (
        ScriptedModelServer(lambda _: Refusal(500)) as sick,
        running_gateway(catalog_at(sick.base_url, A), GatewaySetup(limits=QUICK)) as gateway,
    ):
        for _ in range(8):
            status, _, _ = await post(http, gateway.base_url)
            assert status == 502
        status, headers, body = await post(http, gateway.base_url)
        assert len(sick.requests) == 8
    assert (status, body["error"]["code"]) == (503, "no_eligible_model")
    assert "8 requests failed in a row" in body["error"]["message"]
    assert 1 <= int(headers["retry-after"]) <= 10
    assert "x-should-retry" not in headers


@pytest.mark.cases
async def test_a_retry_after_is_honoured_for_every_client(http: aiohttp.ClientSession) -> None:
    """The provider is not asked again before; clients get the 429 that it would give."""
    answers: Script = [Refusal(429, headers={"retry-after": "30"})]
    async with (
        ScriptedModelServer(answers) as full,
        running_gateway(catalog_at(full.base_url, A), GatewaySetup(limits=QUICK)) as gateway,
    ):
        first = await post(http, gateway.base_url)
        second = await post(http, gateway.base_url)
        assert len(full.requests) == 1
    assert [first[0], second[0]] == [429, 429]
    assert first[1]["retry-after"] == "30"
    assert 29 <= int(second[1]["retry-after"]) <= 30
    assert second[2]["error"]["code"] == "rate_limit_exceeded"


async def test_a_warm_cache_keeps_a_session_at_its_provider(http: aiohttp.ClientSession) -> None:
    """Another session goes where it is cheaper now; the response says which it was."""
    cached = Turn("Hello", usage=Usage(2_000, 5, cache_read_input_tokens=1_800))
    one, two = replace(A, caching="automatic"), replace(B, caching="automatic")
    async with (
        ScriptedModelServer(lambda _: cached) as first,
        ScriptedModelServer(lambda _: cached) as second,
        running_gateway(Catalog(two_places(first, second).providers, (one, two))) as gateway,
    ):
        routing = {"optimize": "cost", "session": "s"}
        await post(http, gateway.base_url, model="b/m", routing=routing)
        _, _, kept = await post(http, gateway.base_url, routing=routing)
        _, _, other = await post(http, gateway.base_url, routing={**routing, "session": "t"})
    assert kept["routing"]["deployment"] == "b/m"
    assert (kept["routing"]["caches"], kept["routing"]["kept_warm"]) == (True, True)
    assert "cache" in kept["routing"]["reason"]
    assert other["routing"]["deployment"] == "a/m"
    assert (other["routing"]["caches"], other["routing"]["kept_warm"]) == (True, False)


async def test_live_traffic_moves_requests_and_shows_in_the_decision(
    http: aiohttp.ClientSession,
) -> None:
    """A deployment whose calls are no use falls below the bar; the receipt has rate, size, age."""

    def answer(request: RecordedRequest) -> Turn:
        broken = '{"path": ' if request.model == "m" else "{}"
        return Turn(calls=(Call("run", broken),))

    policy = Policy(evidence=EvidenceBar(min_tool_success=0.9))
    async with (
        ScriptedModelServer(answer) as server,
        running_gateway(catalog_at(server.base_url, A, N), GatewaySetup(policy=policy)) as gateway,
    ):
        served = []
        for _ in range(7):
            _, _, body = await post(
                http, gateway.base_url, tools=[TOOL], routing={"optimize": "cost"}
            )
            served.append(body["routing"]["deployment"])
        decision = gateway.receipt().decision
    assert served == ["a/m"] * 5 + ["a/n"] * 2
    assert decision is not None
    best, dropped = decision.candidates
    assert dropped.dropped == "tool success 0.00 is below 0.90"
    (grounds,) = [g for g in best.grounds if g.figure == "tool_success"]
    assert (grounds.value, grounds.samples, grounds.source) == (1.0, 1, "measured")
    assert grounds.age_seconds in {0, 1}


async def test_an_evaluation_decides_who_is_asked_for_quality(http: aiohttp.ClientSession) -> None:
    """What was measured ranks; the figure, its size, age and source are on the receipt."""
    evidence = LiveEvidence(SystemClock())
    at = datetime.now(UTC)
    source = "evaluation 1a2b3c, hidden tests: t.results.jsonl"
    evidence.know_qualities(
        [
            QualityResult("n", "coding", 30, 40, at, source),
            QualityResult("m", "coding", 10, 40, at, source),
        ]
    )
    async with (
        ScriptedModelServer(lambda _: Turn("Hello")) as server,
        running_gateway(
            catalog_at(server.base_url, A, N), GatewaySetup(evidence=evidence)
        ) as gateway,
    ):
        routing = {"optimize": "quality", "task": "coding"}
        _, _, body = await post(http, gateway.base_url, routing=routing)
        decision = gateway.receipt().decision
    assert body["routing"]["model"] == "n"
    assert decision is not None
    (grounds,) = decision.candidates[0].grounds
    assert (grounds.value, grounds.samples) == (0.75, 40)
    assert grounds.source == source
    assert f"0.75 over 40 tasks ({source})" in body["routing"]["reason"]


@pytest.mark.cases
@pytest.mark.parametrize("reroutes", [False, True])
async def test_a_content_filters_refusal_is_not_shopped_around(
    http: aiohttp.ClientSession, reroutes: bool
) -> None:
    """Unless the policy says so; the client reads the filter's own words."""
    body = b'{"error":{"message":"filtered","type":"x","code":"content_filter"}}'
    async with (
        ScriptedModelServer(lambda _: Refusal(400, raw=body)) as filtering,
        ScriptedModelServer(lambda _: Turn("Hello")) as other,
        running_gateway(
            two_places(filtering, other),
            GatewaySetup(policy=Policy(reroute_refusals=reroutes)),
        ) as gateway,
    ):
        status, _, answer = await post(http, gateway.base_url, routing={"optimize": "cost"})
        assert len(other.requests) == (1 if reroutes else 0)
    assert status == (200 if reroutes else 400)
    if not reroutes:
        assert answer["error"]["message"] == "filtered"
