"""Orders from a real RabbitMQ."""

import asyncio
import json
from collections.abc import Iterator
from functools import partial

import aio_pika
import pytest
from tests.queues import running_rabbit
from tests.unit.web.rooms import memory_service
from tests.unit.web.test_queue_consumer import SCOPE

from turnout.core.clock import SystemClock
from turnout.core.observe.metrics import Metrics
from turnout.core.service.orders import Submitted
from turnout.core.service.queues import QueueOptions
from turnout.errors import QueueError
from turnout.web.queue.consumer import Consumer
from turnout.web.queue.rabbit import open_rabbit
from turnout.web.runs.intake import take
from turnout.web.runs.orders import RunIn

OPTIONS = QueueOptions("QUEUE_URL")
ORDER = json.dumps({"task": "Fix it.", "repo": "shop"}).encode()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run one RabbitMQ for all tests here."""
    with running_rabbit(tmp_path_factory.mktemp("rabbit")) as found:
        yield found


def message(body: bytes, key: str | None, **headers: str) -> aio_pika.Message:
    """Return a message that outlives a restart."""
    return aio_pika.Message(body, message_id=key, headers=dict(headers), delivery_mode=2)


async def test_messages_become_runs_and_others_are_kept_apart(url: str) -> None:
    """Each once; one that was handed over and not acknowledged comes again."""
    service, taken = memory_service(), list[bool]()

    async def submit(order: RunIn, key: str | None) -> Submitted:
        submitted = await take(service._parts(), SCOPE, order, key)
        taken.append(submitted.created)
        return submitted

    async with await aio_pika.connect(url, timeout=20) as connection, asyncio.timeout(60):
        channel = await connection.channel()
        await channel.declare_queue(OPTIONS.name, durable=True)
        for sent in (
            message(ORDER, "m-1"),
            message(ORDER, "m-2", **{"idempotency-key": "m-1"}),
            message(ORDER, "m-3"),
            message(b"\xff\x00", "m-4"),
        ):
            await channel.default_exchange.publish(sent, routing_key=OPTIONS.name)
        async with open_rabbit(url, OPTIONS) as inbox:
            assert (await inbox.next()).key == "m-1"
        async with Consumer(partial(open_rabbit, url, OPTIONS), submit, SystemClock(), Metrics()):
            queue = await channel.declare_queue(OPTIONS.dead, durable=True)
            async with queue.iterator() as buried:
                dead = await anext(buried)
    assert taken == [True, False, True]
    assert (dead.body, dead.headers["code"]) == (b"\xff\x00", "invalid_request")
    assert (dead.headers["idempotency-key"], bool(dead.headers["error"])) == ("m-4", True)


async def test_a_connection_or_a_queue_that_is_lost_is_told_of(url: str) -> None:
    """So that a new one is made, on which what was not acknowledged comes again."""
    options = QueueOptions("QUEUE_URL", "other", "other.dead")
    async with open_rabbit(url, options) as inbox, asyncio.timeout(30):
        await inbox.broker.stop()
        with pytest.raises(QueueError):
            await inbox.next()
    async with open_rabbit(url, options, look=0.1) as inbox, asyncio.timeout(30):
        async with await aio_pika.connect(url, timeout=20) as connection:
            await (await connection.channel()).queue_delete("other")
        with pytest.raises(QueueError):
            await inbox.next()
    with pytest.raises(QueueError):
        async with open_rabbit("amqp://guest:wrong@" + url.partition("@")[2], options):
            pytest.fail("It has let us in.")
