"""Runs whose workers and gateways are killed end as if nothing had happened."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.databases import KINDS, url_of
from tests.integration.durable_service import Counting, Fleet, order, repeated, written

from turnout.core.clock import SystemClock
from turnout.core.ids import RunId
from turnout.core.service.orders import OrderedRun, RunFilter
from turnout.store.database import open_database
from turnout.store.orders import OrdersStore
from turnout.store.record import RecordStore
from turnout.testing.model_server import ScriptedModelServer
from turnout.wiring.state import DATABASE

pytestmark = pytest.mark.chaos


class Desk:
    """The state folder's store, looked at from outside of the service."""

    def __init__(self, orders: OrdersStore, records: RecordStore) -> None:
        self.orders = orders
        self.records = records

    async def order(self, count: int, steps: int) -> list[RunId]:
        """Order runs."""
        names = [RunId(f"run-{n:012x}") for n in range(count)]
        for name in names:
            await self.orders.submit(name, order(steps), SystemClock().now())
        return names

    async def runs(self) -> tuple[OrderedRun, ...]:
        """Return all runs."""
        return (await self.orders.page("red", RunFilter(), before=None, limit=500)).runs

    async def done(self) -> int:
        """Return how much is on record of all runs."""
        heads = await self.orders.heads([run.run_id for run in await self.runs()])
        return sum(head.last_seq for head in heads.values())

    async def progress(self, by: int) -> None:
        """Wait until so many more events are on record, or all runs have ended."""
        goal = await self.done() + by
        await _until(lambda: self._is_at(goal))

    async def all_ended(self) -> bool:
        """Whether every run has ended."""
        return all(run.state == "ended" for run in await self.runs())

    async def end(self, seconds: float) -> None:
        """Wait for the end of all runs."""
        async with asyncio.timeout(seconds):
            await _until(self.all_ended)

    async def _is_at(self, goal: int) -> bool:
        return await self.done() >= goal or await self.all_ended()


async def _until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Look again and again: what is waited for happens in other processes."""
    for _ in range(10_000):
        if await holds():
            return
        await asyncio.sleep(0.03)


@asynccontextmanager
async def fleet(
    folder: Path, model: Counting, where: str | None = None
) -> AsyncIterator[tuple[Fleet, Desk]]:
    """Prepare a service on a database of PostgreSQL, or of its own; nothing of it runs yet."""
    async with ScriptedModelServer(model, models=["m"]) as server:
        ships = Fleet(folder, server.base_url, {"TURNOUT_DATABASE": where} if where else {})
        ships.prepare()
        async with open_database(where or folder / DATABASE) as database:
            try:
                yield ships, Desk(OrdersStore(database), RecordStore(database))
            finally:
                await ships.close()
        assert server.history_faults == []


async def check(desk: Desk, names: list[RunId], steps: int) -> None:
    """Every run has ended right, with nothing applied twice."""
    for name in names:
        entries = await desk.records.entries(name)
        run = await desk.orders.get("red", name)
        assert (run.outcome, run.state) == ("answered", "ended")
        assert written(entries) == [str(n) for n in range(1, steps + 1)]
        assert repeated(entries) == []
        assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))


@pytest.mark.parametrize("kind", KINDS)
async def test_workers_come_and_go_and_no_run_notices(kind, request, tmp_path):
    """One is killed, another is asked to end: others take over what they had within seconds.

    No call is made twice, and the gateway, which lives, asks no model twice for an answer.
    """
    model = Counting(0.05)
    with url_of(kind, request, tmp_path) as url:
        where = url if kind == "postgresql" else None
        async with fleet(tmp_path / "state", model, where) as (ships, desk), ships.gateway():
            names = await desk.order(2, 4)
            killed, ended = await ships.start("work"), await ships.start("work")
            await desk.progress(20)
            await killed.kill()
            await ships.start("work")
            await desk.progress(12)
            await ended.end()
            await desk.end(120)
            await check(desk, names, 4)
        assert set(model.asked.values()) == {1}
        assert "" not in model.asked


async def test_a_killed_service_goes_on_with_its_runs(tmp_path):
    """Gateway and worker in one process, killed: no step is lost or done twice."""
    model = Counting(0.02)
    async with fleet(tmp_path / "state", model) as (ships, desk):
        names = await desk.order(2, 3)
        service = await ships.start("all")
        await desk.progress(25)
        await service.kill()
        await ships.start("all")
        await desk.end(120)
        await check(desk, names, 3)
        assert max(model.asked.values()) <= 2
