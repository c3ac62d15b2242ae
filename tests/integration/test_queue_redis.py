"""Orders from a real Redis."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

import pytest
from faststream.redis import RedisBroker
from redis.asyncio import Redis
from tests.queues import RedisServer
from tests.unit.web.rooms import memory_service
from tests.unit.web.test_queue_consumer import SCOPE

from turnout.core.clock import SystemClock
from turnout.core.observe.metrics import Metrics
from turnout.core.service.orders import Submitted
from turnout.core.service.queues import QueueOptions
from turnout.errors import QueueError
from turnout.web.queue.consumer import Consumer
from turnout.web.queue.letters import Refused
from turnout.web.queue.redis import open_redis
from turnout.web.runs.intake import take
from turnout.web.runs.orders import RunIn

ORDER = json.dumps({"task": "Fix it.", "repo": "shop"})
NUMBERS = iter(range(1_000))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """Run one Redis for all tests here."""
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def options() -> QueueOptions:
    """Return a stream that no other test uses."""
    name = f"orders-{next(NUMBERS)}"
    return QueueOptions("QUEUE_URL", name, f"{name}.dead")


async def pending(client: Redis, options: QueueOptions) -> int:
    """Return how many messages were handed over and not acknowledged."""
    found = await client.xpending(options.name, options.group)
    return int(found["pending"])


async def until(holds: Callable[[], Awaitable[bool]], what: str) -> None:
    """Look until something holds."""
    for _ in range(1_000):
        if await holds():
            return
        await asyncio.sleep(0.02)
    pytest.fail(f"After 20 s it is not so that {what}.")


async def test_messages_become_runs_and_others_are_kept_apart(
    server: RedisServer, options: QueueOptions
) -> None:
    """Plain ones and FastStream's, also those from before there was a group; each once."""
    service = memory_service()

    async def submit(order: RunIn, key: str | None) -> Submitted:
        return await take(service._parts(), SCOPE, order, key)

    async with Redis.from_url(server.url) as client, RedisBroker(server.url, logger=None) as broker:
        await client.xadd(options.name, {"body": ORDER})
        await client.xadd(options.name, {"body": ORDER, "idempotency-key": "k-1"})
        headers = {"idempotency-key": "k-1"}
        await broker.publish(json.loads(ORDER), stream=options.name, headers=headers)
        await client.xadd(options.name, {b"\xff": b"\xfe"})
        await client.xadd(options.name, {"__data__": '{"data": "x", "headers": 3}'})
        await client.xadd(options.name, {"body": b"\xff\x00", "idempotency-key": "k-2"})

        async def done() -> bool:
            return await client.xlen(options.dead) == 3 and not await pending(client, options)

        async with Consumer(
            partial(open_redis, server.url, options), submit, SystemClock(), Metrics()
        ):
            await until(done, "three messages are buried and none is pending")
        dead = [fields for _, fields in await client.xrange(options.dead)]
    assert len(service.call("GET", "/runs").json()["runs"]) == 2
    assert [fields[b"code"] for fields in dead] == [b"invalid_request"] * 3
    assert dead[0][b"\xff"] == b"\xfe"
    assert (dead[2][b"body"], dead[2][b"idempotency-key"]) == (b"\xff\x00", b"k-2")
    assert all(fields[b"error"] for fields in dead)


async def test_what_a_dead_member_had_is_handed_to_another(
    server: RedisServer, options: QueueOptions
) -> None:
    """Once it is idle; an acknowledged message leaves the stream."""
    async with Redis.from_url(server.url) as client:
        first = await client.xadd(options.name, {"body": ORDER})
        second = await client.xadd(options.name, {"body": ORDER})
        async with open_redis(server.url, options) as inbox:
            await (await inbox.next()).acknowledge()
            assert (await inbox.next()).key == f"{options.name}:{second.decode()}"
        assert (await pending(client, options), first < second) == (1, True)
        assert [place for place, _ in await client.xrange(options.name)] == [second]
        async with open_redis(server.url, options, idle_ms=0) as inbox, asyncio.timeout(20):
            letter = await inbox.next()
            assert (letter.body, letter.key) == (
                ORDER.encode(),
                f"{options.name}:{second.decode()}",
            )
            await letter.bury(Refused("invalid_request", "No."))
        assert await pending(client, options) == 0
        assert (await client.xlen(options.name), await client.xlen(options.dead)) == (0, 1)


async def test_a_server_that_comes_back_goes_on_where_it_was(
    server: RedisServer, options: QueueOptions
) -> None:
    """Killed before the acknowledgement: the message comes again, and is the same run."""
    service, taken = memory_service(), asyncio.Event()
    created: list[Any] = []

    async def submit(order: RunIn, key: str | None) -> Submitted:
        submitted = await take(service._parts(), SCOPE, order, key)
        created.append(submitted.created)
        if len(created) == 1:
            server.kill()
            taken.set()
        return submitted

    async with Redis.from_url(server.url) as client:
        await client.xadd(options.name, {"body": ORDER})
    opening = partial(open_redis, server.url, options, idle_ms=0)
    async with Consumer(opening, submit, SystemClock(), Metrics()):
        async with asyncio.timeout(20):
            await taken.wait()
        server.start()

        async def done() -> bool:
            async with Redis.from_url(server.url) as client:
                return len(created) > 1 and not await pending(client, options)

        await until(done, "the message was acknowledged")
    assert created == [True, False]


async def test_a_stream_that_was_deleted_is_made_anew(
    server: RedisServer, options: QueueOptions
) -> None:
    """The group went with it; the consumer joins a new one."""
    async with Redis.from_url(server.url) as client:
        async with open_redis(server.url, options) as inbox:
            await client.delete(options.name)
            with pytest.raises(QueueError, match="NOGROUP"):
                await inbox.next()
        await client.xadd(options.name, {"body": ORDER})
        async with open_redis(server.url, options) as inbox, asyncio.timeout(20):
            assert (await inbox.next()).body == ORDER.encode()
