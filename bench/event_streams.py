"""How many clients can follow runs from one process, and what does it cost while nothing happens.

Clients of a process of their own follow runs over HTTP, many to a run, records in SQLite. First
nobody commits anything: what the server takes of a processor and of memory. Then events are
committed behind its back, as a worker elsewhere does: the time until each follower has one.
"""

import asyncio
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Self

import aiohttp
from fastapi import FastAPI

from children import end_with_parent
from frame import parse_options, percentile, report
from turnout.core.clock import SystemClock
from turnout.core.events import Notice, RunStarted
from turnout.core.ids import RunId
from turnout.core.service.orders import Order, OrderedRun
from turnout.core.service.repositories import RepositoryBook
from turnout.core.tasks import Task
from turnout.gateway.access import open_access
from turnout.gateway.admin.callers import Gate
from turnout.gateway.delivery import AppLimits
from turnout.gateway.server import hold_many_connections, serve
from turnout.runs.durable.desk import Desk
from turnout.runs.durable.following import Following
from turnout.store.database import open_database
from turnout.store.orders import OrdersStore
from turnout.store.record import RecordStore
from turnout.web.runs.intake import RunParts
from turnout.web.runs.routes import runs_router

RUNS = 50
ORDER = Order(Task("Fix it.", "shop"), "default", "local")


class _Nobody:
    """An engine without workers."""

    async def enqueue(self, run_id: RunId) -> None:
        """Leave it."""

    async def cancel(self, run_id: RunId) -> None:
        """Leave it."""


def follow_all(urls: Sequence[str], told: Connection) -> None:
    """Follow each address; say when all are connected, and when each event came."""
    end_with_parent()
    hold_many_connections()
    asyncio.run(_follow_all(urls, told))


async def _follow_all(urls: Sequence[str], told: Connection) -> None:
    connected = asyncio.Semaphore(0)
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as http:

        async def follow(url: str) -> None:
            async with http.get(url) as answer:
                assert answer.status == 200, answer.status
                connected.release()
                async for line in answer.content:
                    if line.startswith(b"data: "):
                        told.send(time.monotonic())

        following = [asyncio.create_task(follow(url)) for url in urls]
        for _ in urls:
            await connected.acquire()
        told.send("connected")
        await asyncio.gather(*following)


class Server:
    """The API on a database in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        clock = SystemClock()
        database = await self._stack.enter_async_context(open_database(self._folder / "t.db"))
        orders, self.records = OrdersStore(database), RecordStore(database)
        following = Following(orders, self.records, clock)
        await self._stack.enter_async_context(following)
        desk = Desk(orders, self.records, _Nobody(), following, clock)
        app = FastAPI()
        app.include_router(runs_router(RunParts(desk, RepositoryBook())))
        app.add_middleware(Gate, authenticate=open_access(), limits=AppLimits())
        bound = await self._stack.enter_async_context(serve(app, host="127.0.0.1"))
        self.base_url = bound.base_url
        self.runs = [await self._begun(orders) for _ in range(RUNS)]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _begun(self, orders: OrdersStore) -> OrderedRun:
        now = SystemClock().now()
        made = await orders.submit(RunId(f"run-{time.monotonic_ns() % 16**12:012x}"), ORDER, now)
        run = await orders.claim("w", lambda _: made.run.run_id, now)
        assert run is not None
        await self.records.append(
            run.run_id, run.epoch, RunStarted(ORDER.task, "c" * 40, "loop"), now
        )
        return run


async def measured(server: Server, clients: int, events: int, idle: float) -> dict[str, float]:
    """Connect the clients, wait, then let events happen."""
    before = _resident_kb()
    urls = [
        f"{server.base_url}/runs/{server.runs[n % RUNS].run_id}/events?after=1"
        for n in range(clients)
    ]
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(
        target=follow_all, args=(urls, theirs), daemon=True
    )
    process.start()
    assert await asyncio.to_thread(ours.recv) == "connected"
    grown = _resident_kb() - before
    spent, started = _processor(), time.monotonic()
    await asyncio.sleep(idle)
    share = (_processor() - spent) / (time.monotonic() - started)
    times: list[float] = []
    for turn in range(events):
        run = server.runs[turn % RUNS]
        at = time.monotonic()
        await server.records.append(run.run_id, run.epoch, Notice("a"), run.ordered_at)
        came = [await asyncio.to_thread(ours.recv) for _ in range(clients // RUNS)]
        times += [(moment - at) * 1000 for moment in came]
    process.terminate()
    await asyncio.to_thread(process.join)
    return {
        "streams": clients,
        "idle_cpu_percent": round(share * 100, 1),
        "memory_per_stream_kb": round(grown / clients, 1),
        "event_p50_ms": round(percentile([times], 0.5), 1),
        "event_p99_ms": round(percentile([times], 0.99), 1),
    }


def _resident_kb() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def main() -> None:
    """Measure and report."""
    options = parse_options("What clients that follow runs cost one process.")
    hold_many_connections()
    with tempfile.TemporaryDirectory(prefix="turnout-bench-") as folder:
        async with Server(Path(folder)) as server:
            figures = await measured(
                server, options.pick(1_000, 1_000), options.pick(100, 20), options.pick(20, 5)
            )
    report("event_streams", options, figures, facts={"runs": RUNS})


if __name__ == "__main__":
    asyncio.run(main())
