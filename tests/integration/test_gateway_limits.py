"""What one key, one session and one day may use."""

import asyncio
import json
from collections import Counter
from dataclasses import replace

import pytest
from openai import AsyncOpenAI, RateLimitError
from tests.clusters import eventually
from tests.integration.limits import PATHS, PRICED, WAYS, AtNoon, KeyWith, client_of

from turnout.core.govern.keys import KeyLimits
from turnout.core.money import Micros, Price
from turnout.core.policies import Policy, SessionCaps
from turnout.core.usage import Usage
from turnout.gateway.app import PREFIXES
from turnout.testing.exchange import deployment
from turnout.testing.gateway import GatewaySetup, catalog_at
from turnout.testing.messages import MessagesTurn, ScriptedMessagesServer, text
from turnout.testing.model_server import ScriptedModelServer, Turn

pytestmark = pytest.mark.cases

AT_NOON = GatewaySetup(clock=AtNoon())
CAPPED = Policy(session=SessionCaps(max_spend=Micros(100)))


def in_session(shape, name="s"):
    """Return the header that names a session in every shape."""
    return {"x-session-id": f"{name}-{shape}"}


async def test_slots_come_back_however_requests_end():
    """Ten in a row under a limit of four, every other one cut off: all are admitted."""
    turns = [Turn("Hi.") if n % 2 == 0 else Turn("late", delay=30) for n in range(10)]
    async with (
        ScriptedModelServer(turns) as server,
        client_of(catalog_at(server.base_url, PRICED), KeyWith(KeyLimits(concurrency=4))) as client,
    ):
        receipts = client.gateway.receipts.receipts
        for number in range(10):
            shape, stream = WAYS[number % len(WAYS)]
            if number % 2 == 0:
                answer = await client.ask(shape, stream=stream)
                assert answer.status == 200, answer.text
                continue
            asking = asyncio.create_task(client.ask(shape, stream=stream))
            assert await eventually(lambda n=number: len(server.requests) > n)
            asking.cancel()
            assert await eventually(lambda n=number: len(receipts) > n, seconds=1)
        statuses = Counter(receipt.status for receipt in receipts.values())
    assert statuses == {"ok": 5, "cancelled": 5}


@pytest.mark.parametrize(("shape", "stream"), WAYS)
async def test_an_upstream_that_stalls_gives_its_slot_back(shape, stream):
    """A limit of one admits the next request after each time-out."""
    async with (
        ScriptedModelServer([Turn("late", delay=30)] * 9) as server,
        client_of(
            catalog_at(server.base_url, PRICED, idle_timeout=0.1),
            KeyWith(KeyLimits(concurrency=1)),
        ) as client,
    ):
        statuses = [(await client.ask(shape, stream=stream)).status for _ in range(3)]
    assert statuses == [504, 504, 504]


async def test_a_request_refused_for_concurrency_burns_no_minute():
    """Two a minute, one at once: A runs, B is refused, C passes, D has no minute left."""
    async with (
        ScriptedModelServer([Turn("A", delay=0.3), Turn("C")]) as server,
        client_of(
            catalog_at(server.base_url, PRICED),
            KeyWith(KeyLimits(requests_per_minute=2, concurrency=1), setup=AT_NOON),
        ) as client,
    ):
        first = asyncio.create_task(client.ask())
        assert await eventually(lambda: server.requests)
        second = await client.ask()
        assert (await first).status == 200
        third, fourth = await client.ask(), await client.ask()
    assert (second.status, third.status, fourth.status) == (429, 200, 429)
    assert json.loads(second.text)["error"]["code"] == "concurrency_limit"
    assert json.loads(fourth.text)["error"]["code"] == "rate_limit_exceeded"
    assert 1 <= int(fourth.headers["retry-after"]) <= 60
    assert "x-should-retry" not in fourth.headers


@pytest.mark.parametrize(("shape", "stream"), WAYS)
async def test_parallel_calls_overshoot_a_spend_cap_by_one_at_most(shape, stream):
    """Twenty calls, each of which may cost most of what the session has: two are served."""
    usage = Usage(input_tokens=10, output_tokens=50)
    async with (
        ScriptedModelServer([Turn("Hi.", delay=0.2, usage=usage)] * 20) as server,
        client_of(
            catalog_at(server.base_url, PRICED), KeyWith(setup=GatewaySetup(CAPPED))
        ) as client,
    ):
        headers = in_session(shape)
        asked = (
            client.ask(shape, stream=stream, max_tokens=50, headers=headers) for _ in range(20)
        )
        answers = await asyncio.gather(*asked)
        totals = await client.gateway.books.totals("ci", f"s-{shape}")
    assert Counter(answer.status for answer in answers) == {200: 2, 402: 18}
    assert totals.spend == 120
    assert len(server.requests) == 2
    refused = next(answer for answer in answers if answer.status == 402)
    assert "session" in refused.text


async def test_the_first_requests_of_an_unknown_session_are_capped_too():
    """They come before there is anything to look at."""
    policy = Policy(session=SessionCaps(max_requests=5))
    async with (
        ScriptedModelServer([Turn("Hi.", delay=0.1)] * 20) as server,
        client_of(
            catalog_at(server.base_url, PRICED), KeyWith(setup=GatewaySetup(policy))
        ) as client,
    ):
        asked = (client.ask(headers={"x-session-id": "new"}) for _ in range(20))
        statuses = Counter(answer.status for answer in await asyncio.gather(*asked))
    assert statuses == {200: 5, 429: 15}


async def test_a_cap_of_a_policy_that_the_request_chooses_is_kept():
    """It counts as the key's own policy would."""
    tight = Policy("tight", session=SessionCaps(max_requests=1))
    wanted = KeyWith(
        record={"policies": ("default", "tight")}, setup=GatewaySetup(policies=(tight,))
    )
    async with (
        ScriptedModelServer([Turn("Hi.")] * 9) as server,
        client_of(catalog_at(server.base_url, PRICED), wanted) as client,
    ):
        routing = {"policy": "tight", "session": "s"}
        statuses = [(await client.ask(routing=routing)).status for _ in range(3)]
        assert (await client.ask(routing={"session": "s"})).status == 200
    assert statuses == [200, 429, 429]


async def test_a_day_has_its_cap_over_all_sessions():
    """402 that names the key's cap; what was reserved and not spent is free again."""
    limits = KeyLimits(spend_per_day=Micros(250))
    usage = Usage(input_tokens=10, output_tokens=90)
    async with (
        ScriptedModelServer([Turn("Hi.", usage=usage)] * 9) as server,
        client_of(catalog_at(server.base_url, PRICED), KeyWith(limits, setup=AT_NOON)) as client,
    ):
        answers = [
            await client.ask(shape, headers=in_session(shape, f"{n}"))
            for n in range(2)
            for shape in PATHS
        ]
    assert [answer.status for answer in answers] == [200, 200, 200, 402, 402, 402]
    assert "key_spend_cap" in answers[3].text


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(("shape", "stream"), WAYS)
async def test_every_route_to_a_model_is_metered(prefix, shape, stream):
    """Under each of its addresses."""
    limits = KeyLimits(requests_per_minute=1)
    async with (
        ScriptedModelServer([Turn("Hi.")] * 2) as server,
        client_of(catalog_at(server.base_url, PRICED), KeyWith(limits, setup=AT_NOON)) as client,
    ):
        base = client.gateway.base_url.removesuffix("/v1") + prefix
        answers = [await client.ask(shape, stream=stream, base=base) for _ in range(2)]
    assert [answer.status for answer in answers] == [200, 429]
    assert len(server.requests) == 1


async def test_counting_tokens_is_metered():
    """It reaches a provider too."""
    limits = KeyLimits(requests_per_minute=1)
    async with (
        ScriptedModelServer([]) as server,
        client_of(catalog_at(server.base_url, PRICED), KeyWith(limits, setup=AT_NOON)) as client,
    ):
        request = client.request("messages")
        del request["json"]["max_tokens"], request["json"]["stream"]
        request["url"] += "/count_tokens"
        statuses = []
        for _ in range(2):
            async with client.http.post(**request) as answer:
                statuses.append(answer.status)
    assert statuses == [200, 429]


@pytest.mark.clients
async def test_a_client_does_not_try_a_capped_session_again():
    """The SDK retries 429 unless it is told not to: one request reaches the gateway."""
    policy = Policy(session=SessionCaps(max_requests=1))
    async with (
        ScriptedModelServer([Turn("Hi.")] * 9) as server,
        client_of(
            catalog_at(server.base_url, PRICED), KeyWith(setup=GatewaySetup(policy))
        ) as client,
    ):
        base = client.gateway.base_url
        async with AsyncOpenAI(base_url=base, api_key=client.key, max_retries=5) as sdk:
            said = {"model": "auto", "messages": [{"role": "user", "content": "Hi"}]}
            routing = {"extra_body": {"routing": {"session": "s"}}}
            await sdk.chat.completions.create(**said, **routing)
            with pytest.raises(RateLimitError) as caught:
                await sdk.chat.completions.create(**said, **routing)
        receipts = list(client.gateway.receipts.receipts.values())
    assert caught.value.code == "session_request_cap"
    assert [receipt.http_status for receipt in receipts] == [200, 429]


@pytest.mark.parametrize(
    ("price", "cost"),
    [
        (Price(input=1_400_000, output=0, cache_read=100_000), 230),
        (Price(input=1_400_000, output=0), 1_400),
    ],
)
@pytest.mark.parametrize("shape", PATHS)
async def test_the_same_tokens_cost_the_same_whatever_way_they_are_counted(shape, price, cost):
    """Some count cached tokens among the input, some beside it."""
    inclusive = Turn("Hi.", usage=Usage(1_000, 5, cache_read_input_tokens=900))
    exclusive = MessagesTurn(
        (text("Hi."),),
        usage={"input_tokens": 100, "output_tokens": 5, "cache_read_input_tokens": 900},
    )
    served = replace(deployment("p/m"), price=price)
    costs = []
    for server, spoken in (
        (ScriptedModelServer([inclusive] * 2), "chat"),
        (ScriptedMessagesServer([exclusive] * 2), "messages"),
    ):
        async with (
            server,
            client_of(catalog_at(server.base_url, served, shape=spoken), KeyWith()) as client,
        ):
            for stream in (False, True):
                assert (await client.ask(shape, stream=stream)).status == 200
            costs += [r.cost_micros for r in client.gateway.receipts.receipts.values()]
    assert costs == [cost] * 4


@pytest.mark.parametrize("shape", PATHS)
async def test_tokens_written_to_a_cache_are_charged_once(shape):
    """Written, read and plain tokens are three parts of one input."""
    price = Price(1_000_000, 0, cache_read=100_000, cache_write=1_250_000)
    counts = {
        "input_tokens": 100,
        "output_tokens": 5,
        "cache_read_input_tokens": 400,
        "cache_creation_input_tokens": 500,
        "cache_creation": {"ephemeral_5m_input_tokens": 500, "ephemeral_1h_input_tokens": 0},
    }
    turn = MessagesTurn((text("Hi."),), usage=counts)
    served = replace(deployment("p/m"), price=price)
    async with (
        ScriptedMessagesServer([turn] * 2) as server,
        client_of(catalog_at(server.base_url, served, shape="messages"), KeyWith()) as client,
    ):
        for stream in (False, True):
            assert (await client.ask(shape, stream=stream)).status == 200
        receipts = list(client.gateway.receipts.receipts.values())
    assert [receipt.cost_micros for receipt in receipts] == [100 + 40 + 625] * 2
    assert [receipt.usage for receipt in receipts] == [Usage(1_000, 5, 400, 500)] * 2
