"""One process of a service that may be killed: `python -m turnout.testing.fleet.process`.

Its arguments are ROLE, HOME and SOCKET: `gateway` serves the gateway behind the socket, `work`
works on runs with that gateway, `all` does both. Settings come from HOME and from the environment.
It says `ready` on a line, and ends in order when it is asked to or its input ends: whoever started
it is gone then.
"""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from turnout.agent.client import HttpModelClient
from turnout.core.clock import SystemClock
from turnout.core.service.orders import Order
from turnout.gateway.access import open_access
from turnout.gateway.server import serve
from turnout.runs.durable.engine import Pace
from turnout.runs.durable.ports import ModelsFor
from turnout.runs.ports import ModelAccess
from turnout.settings import Settings, load_settings
from turnout.store.database import open_database
from turnout.wiring.gateway import app_of, ground_of, site_of
from turnout.wiring.serving.durable import open_durable
from turnout.wiring.state import database_of

__all__ = ["SOCKET", "gateway", "working"]

SOCKET: Final = "gateway.sock"
_PACE: Final = Pace(beat=0.3, stale=1.5, look=0.3, grace=5.0)


@asynccontextmanager
async def gateway(settings: Settings, uds: Path) -> AsyncIterator[None]:
    """Serve the gateway of a state folder behind a socket."""
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_database(database_of(settings)))
        ground = await ground_of(settings, database, clock, stack)
        site = await site_of(ground, lambda _: None, "absent")
        await stack.enter_async_context(serve(app_of(site, open_access(name="red")), uds=uds))
        yield


@asynccontextmanager
async def working(settings: Settings, uds: Path, pace: Pace = _PACE) -> AsyncIterator[None]:
    """Work on runs with the gateway behind a socket."""
    async with (
        open_database(database_of(settings)) as database,
        open_durable(settings, database, SystemClock(), _models(uds), pace=pace),
    ):
        yield


def _models(uds: Path) -> ModelsFor:
    @asynccontextmanager
    async def models(_: Order) -> AsyncIterator[ModelAccess]:
        clock = SystemClock()
        url = "http://gateway/v1"
        client = HttpModelClient(base_url=url, uds=uds, api_key="", clock=clock, lasting=True)
        async with client:
            yield ModelAccess(client, "loop")

    return models


async def _main(role: str, home: Path, uds: Path) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    # Nothing is ever written to it.
    loop.add_reader(sys.stdin.fileno(), ended.set)
    settings = load_settings(config=home / "turnout.toml")
    async with AsyncExitStack() as stack:
        if role != "work":
            await stack.enter_async_context(gateway(settings, uds))
        if role != "gateway":
            await stack.enter_async_context(working(settings, uds))
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await ended.wait()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])))
