"""`turnout serve --consume`: a message in Redis becomes a run that ends."""

import asyncio
import json
from pathlib import Path

from redis.asyncio import Redis
from tests.acceptance.command import FIX, TASK, Command
from tests.acceptance.test_service import serving
from tests.queues import RedisServer

from turnout.testing.model_server import ScriptedModelServer
from turnout.testing.repositories import TinyRepository

CONFIG = """
[service.queue]
url_env = "QUEUE_URL"
"""


async def test_a_message_in_redis_becomes_a_run_that_ends(
    turnout: Command, pages: TinyRepository, tmp_path: Path
) -> None:
    """The service tells of it over HTTP as of any other; what is no order is kept apart."""
    redis = RedisServer(tmp_path)
    redis.start()
    try:
        async with ScriptedModelServer(FIX) as server, Redis.from_url(redis.url) as client:
            await client.xadd("turnout.runs", {"body": json.dumps({"task": TASK, "repo": "shop"})})
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
            assert (ended["state"], ended["verdict"]) == ("ended", "resolved")
            (dead,) = await client.xrange("turnout.runs.dead")
            assert dead[1][b"body"] == b"no order"
    finally:
        redis.kill()
