"""`turnout serve --consume`: a message in Redis becomes a run that ends."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis.asyncio import Redis
from tests.acceptance.command import DIFF, Command
from tests.acceptance.test_reviews import APPROVE
from tests.acceptance.test_service import serving
from tests.queues import RedisServer

from turnout.testing.model_server import ScriptedModelServer
from turnout.testing.repositories import TinyRepository

CONFIG = """
[service.queue]
url_env = "QUEUE_URL"
"""


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    """Run a Redis."""
    server = RedisServer(tmp_path)
    server.start()
    yield server
    server.kill()


async def test_a_message_in_redis_becomes_a_run_that_ends(
    turnout: Command, pages: TinyRepository, redis: RedisServer
) -> None:
    """The service tells of it over HTTP as of any other; what is no order is kept apart."""
    order = {"kind": "review", "repo": "shop", "diff": DIFF}
    async with ScriptedModelServer((APPROVE,)) as server, Redis.from_url(redis.url) as client:
        await client.xadd("turnout.runs", {"body": json.dumps(order)})
        await client.xadd("turnout.runs", {"body": "no order"})
        here = turnout.configured(CONFIG).using(server.base_url, model="m")
        here = here.where(QUEUE_URL=redis.url)
        async with serving(here, "--repo", f"shop={pages}", "--consume") as service:
            _, listed = await service.call("GET", "/runs")
            while not listed["runs"]:
                await asyncio.sleep(0.05)
                _, listed = await service.call("GET", "/runs")
            (run,) = listed["runs"]
            await service.events(f"/runs/{run['id']}")
            _, ended = await service.call("GET", f"/runs/{run['id']}")
        assert (ended["state"], ended["outcome"]) == ("ended", "answered"), ended["result"]
        assert ended["result"]["review"]["decision"] == "approve"
        (dead,) = await client.xrange("turnout.runs.dead")
        assert dead[1][b"body"] == b"no order"


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("", "No queue is set up"),
        (CONFIG, "QUEUE_URL is not set"),
        (f'{CONFIG}key = "nobody"\n', "There is no key 'nobody'"),
    ],
)
async def test_a_queue_that_cannot_be_read_from_is_told_of_at_the_start(
    turnout: Command, pages: TinyRepository, config: str, said: str
) -> None:
    """2, before anything is served."""
    async with ScriptedModelServer((APPROVE,)) as server:
        here = turnout.configured(config).using(server.base_url, model="m")
        done = await here("serve", "--port", "0", "--repo", f"shop={pages}", "--consume")
    assert (done.code, said in done.err) == (2, True), done.err
