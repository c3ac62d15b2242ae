"""A request that is sent again under its idempotency key is answered once."""

import asyncio
import json
from collections import Counter
from contextlib import AsyncExitStack
from datetime import timedelta

import pytest
from tests.clusters import eventually
from tests.integration.limits import NOON, PATHS, PRICED, WAYS, Client, KeyWith, client_of

from turnout.core.govern.closing import KeptReply
from turnout.core.govern.usage import UsageQuery
from turnout.core.ids import RequestId
from turnout.core.policies import Policy, SessionCaps
from turnout.errors import StoreError
from turnout.store.books import BooksStore
from turnout.store.database import open_database
from turnout.store.replies import RepliesStore
from turnout.testing.books import MemoryBooks
from turnout.testing.gateway import GatewaySetup, catalog_at
from turnout.testing.memory.noticed import MemoryUsage
from turnout.testing.model_server import Call, Refusal, ScriptedModelServer, Turn

ONCE = {"idempotency-key": "once"}
READ = Turn("I look.", calls=(Call("read_file", {"path": "a"}),))
TOOL = {"name": "read_file", "parameters": {"type": "object", "properties": {}}}
TOOLS = {
    "chat": [{"type": "function", "function": TOOL}],
    "messages": [{"name": "read_file", "input_schema": TOOL["parameters"]}],
    "responses": [{"type": "function", **TOOL}],
}


def said(text):
    """Return all text of an answer, whole or streamed, without what names the request."""
    if not text.startswith(("event:", "data:")):
        return _texts(json.loads(text))
    events = [line[6:] for line in text.splitlines() if line.startswith("data: {")]
    kept = [json.loads(event) for event in events]
    ends = [e for e in kept if not str(e.get("type", "")).endswith((".done", ".completed"))]
    return "".join(filter(None, (_deltas(event) for event in ends)))


def _texts(value):
    match value:
        case {"choices": [{"message": message}]}:
            return message["content"] or ""
        case {"content": blocks}:
            return "".join(block.get("text", "") for block in blocks)
        case {"output": items}:
            return "".join(_texts(item) for item in items if "content" in item)
    return ""


def _deltas(event):
    match event:
        case {"choices": [{"delta": {"content": str(text)}}]}:
            return text
        case {"type": "content_block_delta", "delta": {"text": text}}:
            return text
        case {"type": "response.output_text.delta", "delta": text}:
            return text
    return ""


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize(("shape", "stream"), WAYS)
async def test_the_answer_is_given_again(shape, stream, again):
    """Whole or streamed, whichever way it came; the model is asked once and paid once."""
    async with (
        ScriptedModelServer([Turn("All of it."), Turn("Never.")]) as server,
        client_of(catalog_at(server.base_url, PRICED), KeyWith()) as client,
    ):
        first = await client.ask(shape, stream=stream, headers=ONCE)
        second = await client.ask(shape, stream=again, headers=ONCE)
        receipts = list(client.gateway.receipts.receipts.values())
    assert (first.status, second.status) == (200, 200), second.text
    assert said(first.text) == said(second.text) == "All of it."
    assert len(server.requests) == 1
    served, replayed = receipts
    assert replayed.replay_of == served.request_id
    assert (replayed.cost_micros, replayed.usage.input_tokens) == (0, 0)
    assert replayed.request_id in second.text
    assert "text/event-stream" in second.headers["content-type"] or not again


@pytest.mark.parametrize("shape", PATHS)
async def test_tool_calls_are_given_again_with_their_ids(shape):
    """What the client does next is the same."""
    async with (
        ScriptedModelServer([READ]) as server,
        client_of(catalog_at(server.base_url, PRICED), KeyWith()) as client,
    ):
        answers = [
            await client.ask(shape, stream=stream, headers=ONCE, tools=TOOLS[shape])
            for stream in (False, True, False)
        ]
    assert all("call_1_0" in answer.text or "call_0_0" in answer.text for answer in answers)
    assert all("read_file" in answer.text for answer in answers)


@pytest.mark.parametrize(("shape", "stream"), WAYS)
async def test_requests_join_the_one_in_flight(shape, stream):
    """Ten clients at once, one call of the model."""
    async with (
        ScriptedModelServer([Turn("For all.", delay=0.3)]) as server,
        client_of(catalog_at(server.base_url, PRICED), KeyWith()) as client,
    ):
        asked = (client.ask(shape, stream=stream, headers=ONCE) for _ in range(10))
        answers = await asyncio.gather(*asked)
    assert [said(answer.text) for answer in answers] == ["For all."] * 10
    assert len(server.requests) == 1


async def test_other_content_under_the_same_key_is_a_conflict():
    """409 in every shape, also while the first is under way; nobody is charged for it."""
    async with (
        ScriptedModelServer([Turn("Hi.", delay=0.2)] * 9) as server,
        client_of(catalog_at(server.base_url, PRICED), KeyWith()) as client,
    ):
        first = asyncio.create_task(client.ask(headers=ONCE))
        assert await eventually(lambda: server.requests)
        early = await client.ask(headers=ONCE, say="Other")
        assert (await first).status == 200
        late = [await client.ask(shape, headers=ONCE, say="Other") for shape in PATHS]
    assert [answer.status for answer in (early, *late)] == [409] * 4
    assert all("idempotency" in answer.text for answer in late)
    assert len(server.requests) == 1


async def test_a_failed_request_is_served_again():
    """An error is not kept."""
    async with (
        ScriptedModelServer([Refusal(400, "no"), Turn("Now.")]) as server,
        client_of(catalog_at(server.base_url, PRICED), KeyWith()) as client,
    ):
        first = await client.ask(headers=ONCE)
        second = await client.ask(headers=ONCE)
        third = await client.ask(headers=ONCE)
    assert (first.status, second.status) == (400, 200)
    assert said(second.text) == said(third.text) == "Now."


@pytest.mark.parametrize(("shape", "stream"), WAYS)
async def test_when_the_first_client_goes_away_the_next_is_served(shape, stream):
    """Its call of the model ends with it; whoever has joined gets a call of its own."""
    async with (
        ScriptedModelServer([Turn("late", delay=30), Turn("Mine.")]) as server,
        client_of(catalog_at(server.base_url, PRICED), KeyWith()) as client,
    ):
        first = asyncio.create_task(client.ask(shape, stream=stream, headers=ONCE))
        assert await eventually(lambda: server.requests)
        second = asyncio.create_task(client.ask(shape, stream=stream, headers=ONCE))
        await asyncio.sleep(0.05)
        first.cancel()
        async with asyncio.timeout(3):
            assert said((await second).text) == "Mine."


@pytest.mark.parametrize("shape", PATHS)
async def test_a_lasting_request_is_served_though_its_client_goes_away(shape):
    """Whoever comes back, while it is under way or later, gets the one answer."""
    headers = {**ONCE, "x-turnout-lasting": "1"}
    async with (
        ScriptedModelServer([Turn("For you.", delay=0.3)]) as server,
        client_of(catalog_at(server.base_url, PRICED), KeyWith()) as client,
    ):
        gone = asyncio.create_task(client.ask(shape, headers=headers))
        assert await eventually(lambda: server.requests)
        gone.cancel()
        await asyncio.wait({gone})
        early = await client.ask(shape, headers=headers)
        late = await client.ask(shape, headers=headers)
    assert said(early.text) == said(late.text) == "For you."
    assert len(server.requests) == 1
    assert not server.requests[0].closed.is_set()


async def test_a_replay_uses_up_no_cap():
    """It is no call of a model."""
    policy = Policy(session=SessionCaps(max_requests=1))
    async with (
        ScriptedModelServer([Turn("Hi.")] * 9) as server,
        client_of(
            catalog_at(server.base_url, PRICED), KeyWith(setup=GatewaySetup(policy))
        ) as client,
    ):
        headers = {**ONCE, "x-session-id": "s"}
        statuses = [(await client.ask(headers=headers)).status for _ in range(3)]
        other = await client.ask(headers={"x-session-id": "s"})
    assert statuses == [200, 200, 200]
    assert other.status == 429


async def test_a_request_whose_gateway_died_is_made_again_and_both_are_on_record():
    """Under the same key; the receipt of the first says that nobody knows what became of it."""
    books = MemoryBooks()
    gone = KeptReply("ci", "once", "digest", "", NOON, RequestId("req-gone"))
    await books.replies.claim(gone, NOON - timedelta(seconds=15))
    setup = GatewaySetup(books=books, replies=books.replies)
    async with (
        ScriptedModelServer([Turn("Now.")]) as server,
        client_of(catalog_at(server.base_url, PRICED), KeyWith(setup=setup)) as client,
    ):
        again = [await client.ask(headers=ONCE) for _ in range(2)]
        receipts = books.receipts.receipts
        usage = await MemoryUsage(receipts).usage(UsageQuery())
    assert [said(answer.text) for answer in again] == ["Now."] * 2
    assert len(server.requests) == 1
    assert [one.status for one in receipts.values()] == ["unknown", "ok", "ok"]
    assert receipts["req-gone"].cost_micros is None
    assert (usage.total.unknown, usage.total.unpriced, usage.total.errors) == (1, 1, 1)


class Failing(MemoryBooks):
    """Books on a database that is away for the first few times."""

    def __init__(self, times):
        super().__init__()
        self._times = times

    async def close(self, closing):
        """Write it, or not."""
        self._times -= 1
        if self._times >= 0:
            raise StoreError("The database is away.")
        await super().close(closing)


async def test_an_answer_is_held_until_the_database_is_back():
    """It is paid for: whoever asks again meanwhile gets it, and the model is asked once."""
    books = Failing(2)
    setup = GatewaySetup(books=books, replies=books.replies)
    async with (
        ScriptedModelServer([Turn("Kept."), Turn("Never.")]) as server,
        client_of(catalog_at(server.base_url, PRICED), KeyWith(setup=setup)) as client,
    ):
        answers = await asyncio.gather(*(client.ask(headers=ONCE) for _ in range(2)))
        unkeyed = Failing(1)
        setup = GatewaySetup(books=unkeyed, replies=unkeyed.replies)
        async with client_of(catalog_at(server.base_url, PRICED), KeyWith(setup=setup)) as other:
            refused = await other.ask()
    assert [said(answer.text) for answer in answers] == ["Kept."] * 2
    assert [one.status for one in books.receipts.receipts.values()] == ["ok", "ok"]
    assert refused.status == 503
    assert len(server.requests) == 2


async def test_two_gateways_on_one_database_give_one_answer(tmp_path):
    """Processes that share nothing but the file."""
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        server = await enter(ScriptedModelServer([Turn("One.", delay=0.4)]))
        clients: list[Client] = []
        for _ in range(2):
            database = await enter(open_database(tmp_path / "turnout.db"))
            setup = GatewaySetup(books=BooksStore(database), replies=RepliesStore(database))
            catalog = catalog_at(server.base_url, PRICED)
            clients.append(await enter(client_of(catalog, KeyWith(setup=setup))))
        asked = (client.ask(headers=ONCE) for client in clients for _ in range(3))
        answers = await asyncio.gather(*asked)
        later = await clients[1].ask(headers=ONCE, stream=True)
    assert [said(answer.text) for answer in (*answers, later)] == ["One."] * 7
    assert Counter(answer.status for answer in answers) == {200: 6}
    assert len(server.requests) == 1
