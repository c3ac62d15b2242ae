"""What may befall a service, each told in figures and in what is wrong afterwards."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic

from turnout.core.clock import SystemClock
from turnout.core.ids import RunId
from turnout.core.service.orders import Answer, Once
from turnout.store.database import open_database
from turnout.store.orders import OrdersStore
from turnout.testing.fleet.counting import Counting, counting_order
from turnout.testing.fleet.desk import Desk
from turnout.testing.fleet.fleet import Fleet, Process, open_fleet
from turnout.testing.fleet.postgres import Postgres

__all__ = [
    "Ground",
    "Outcome",
    "Size",
    "approval_without_workers",
    "database_stopped",
    "gateways_killed",
    "identical_intakes",
    "rolling_restart",
    "two_machines",
    "workers_killed",
]

_EVENTS = 6
"""On record for a step, about."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much of it."""

    runs: int
    steps: int
    kills: int = 0
    seconds: float = 600.0
    """That all may take."""


@dataclass(frozen=True, slots=True)
class Ground:
    """Where it happens."""

    folder: Path
    """A new one for each; it becomes the state folder."""
    postgres: Postgres | None = None
    """None: SQLite in the state folder."""
    url: str | None = None
    """Of an empty database of that server; None: its first one."""
    delay: float = 0.02
    """Seconds that the model takes to answer."""

    @property
    def where(self) -> str | None:
        """The URL of the database; None for the one in the state folder."""
        return self.url or (None if self.postgres is None else self.postgres.url)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it."""

    figures: Mapping[str, float]
    faults: Sequence[str] = field(default_factory=tuple)
    """What is not as if nothing had happened."""


@dataclass(frozen=True, slots=True)
class _Scene:
    fleet: Fleet
    desk: Desk
    model: Counting
    size: Size
    began: float

    @property
    def share(self) -> int:
        """Events between two kills."""
        return self.size.runs * self.size.steps * _EVENTS // (self.size.kills + 1)

    async def ended(self, **more: float) -> Outcome:
        """Wait for the end of all runs, and say how it went."""
        await self.desk.end(self.size.seconds)
        runs = await self.desk.runs()
        figures = {
            "seconds": round(monotonic() - self.began, 1),
            "runs_ended": sum(run.outcome == "answered" for run in runs),
            "segments": sum(run.epoch for run in runs),
            "steps": await self.desk.steps(),
            "calls_interrupted": await self.desk.interrupted(),
            "completions_asked_again": self.model.asked_again,
            **more,
        }
        return Outcome(figures, await self.desk.faults(self.size.steps))


@asynccontextmanager
async def _scene(
    ground: Ground, size: Size, *, settings: str = "", workers: int = 3
) -> AsyncIterator[_Scene]:
    model = Counting(ground.delay)
    opening = open_fleet(ground.folder, model, ground.where, settings=settings, workers=workers)
    async with opening as (fleet, desk):
        yield _Scene(fleet, desk, model, size, monotonic())


async def workers_killed(ground: Ground, size: Size) -> Outcome:
    """Kill one of two workers again and again; the gateway is a process of its own and lives."""
    async with _scene(ground, size) as scene:
        fleet, desk = scene.fleet, scene.desk
        await desk.order(size.runs, size.steps)
        await fleet.start("gateway")
        workers = [await fleet.start("work") for _ in range(2)]
        for _ in range(size.kills):
            await desk.progress(scene.share, size.seconds)
            await workers.pop(0).kill()
            workers.append(await fleet.start("work"))
        return await scene.ended(kills=size.kills)


async def gateways_killed(ground: Ground, size: Size) -> Outcome:
    """Kill the gateway and a worker together, again and again.

    A call may be asked for again only if it was under way at such a moment, and then its receipt
    says that nobody knows what became of the first.
    """
    async with _scene(ground, size) as scene:
        fleet, desk = scene.fleet, scene.desk
        await desk.order(size.runs, size.steps)
        gateway = await fleet.start("gateway")
        workers = [await fleet.start("work") for _ in range(2)]
        under_way: set[str] = set()
        for _ in range(size.kills):
            await desk.progress(scene.share, size.seconds)
            await gateway.kill()
            under_way.update(await desk.claims())
            await workers.pop(0).kill()
            gateway, worker = await fleet.start("gateway"), await fleet.start("work")
            workers.append(worker)
        outcome = await scene.ended(kills=size.kills, calls_under_way=len(under_way))
        unknown = set(await desk.unknown())
        faults = list(outcome.faults)
        if not unknown <= under_way:
            faults.append(f"{unknown - under_way} are unknown and were not under way")
        if scene.model.asked_again > len(unknown):
            faults.append(f"{scene.model.asked_again} were asked again, {len(unknown)} are unknown")
        return Outcome({**outcome.figures, "receipts_unknown": len(unknown)}, faults)


async def database_stopped(ground: Ground, size: Size, *, seconds: float) -> Outcome:
    """Stop PostgreSQL under running work, and start it again after so many seconds."""
    if ground.postgres is None:
        raise ValueError("Only a server can be stopped.")
    async with _scene(ground, size) as scene:
        fleet, desk = scene.fleet, scene.desk
        await desk.order(size.runs, size.steps)
        processes = [await fleet.start("gateway"), await fleet.start("work")]
        await desk.progress(scene.share // 2, size.seconds)
        await asyncio.to_thread(ground.postgres.stop)
        await asyncio.sleep(seconds)
        await asyncio.to_thread(ground.postgres.start)
        back = monotonic()
        outcome = await scene.ended(outage_seconds=seconds)
        faults = [*outcome.faults, *_dead(processes)]
        return Outcome({**outcome.figures, "ended_after": round(monotonic() - back, 1)}, faults)


async def rolling_restart(ground: Ground, size: Size) -> Outcome:
    """Replace every worker by a new one while all runs are worked on: no step is done twice."""
    async with _scene(ground, size, workers=size.runs) as scene:
        fleet, desk = scene.fleet, scene.desk
        await desk.order(size.runs, size.steps)
        await fleet.start("gateway")
        old = [await fleet.start("work")]
        await desk.under_way(size.runs, size.seconds)
        for _ in range(size.kills):
            await desk.progress(scene.share, size.seconds)
            old.append(await fleet.start("work"))
            await old.pop(0).end()
        outcome = await scene.ended(restarts=size.kills)
        twice = ("calls_interrupted", "completions_asked_again")
        found = [f"{outcome.figures[what]} {what}" for what in twice if outcome.figures[what]]
        return Outcome(outcome.figures, [*outcome.faults, *found])


async def approval_without_workers(ground: Ground, size: Size) -> Outcome:
    """Decide on every call while no worker lives; each time the runs go on with it."""
    async with (
        _scene(ground, size, settings='approvals = ["run"]\n') as scene,
        scene.fleet.gateway(),
    ):
        fleet, desk, decided = scene.fleet, scene.desk, 0
        await desk.order(size.runs, size.steps)
        while not await desk.all_ended():
            async with fleet.working():
                await desk.until(partial(_stand, desk), size.seconds)
            for run in await desk.runs():
                if run.waits_for is not None:
                    answer = Answer(allowed=True, by="ada", call_id=run.waits_for.call.id)
                    await desk.orders.answer("red", run.run_id, answer, SystemClock().now())
                    decided += 1
        return await scene.ended(decided=decided)


async def two_machines(ground: Ground, size: Size) -> Outcome:
    """Kill all that works on one machine; another one with its own disk ends what it began."""
    async with _scene(ground, size) as scene:
        fleet, desk = scene.fleet, scene.desk
        other = ground.folder.with_name(f"{ground.folder.name}-2")
        fleet.prepare(other)
        await desk.order(size.runs, size.steps)
        await fleet.start("gateway")
        first = await fleet.start("work")
        await desk.progress(scene.share // 2, size.seconds)
        await first.kill()
        await fleet.start("work", other)
        return await scene.ended(kills=1)


async def identical_intakes(ground: Ground, count: int, *, connections: int = 5) -> Outcome:
    """Send one order so often at once over several connections: it is one run."""
    where = ground.where or ground.folder / "turnout.db"
    once = Once("key", "digest")
    async with AsyncExitStack() as stack:
        desks = [
            OrdersStore(await stack.enter_async_context(open_database(where)))
            for _ in range(connections)
        ]
        sent = [
            desks[n % connections].submit(
                RunId(f"run-{n:012x}"), counting_order(1), SystemClock().now(), once
            )
            for n in range(count)
        ]
        made = await asyncio.gather(*sent)
    runs = {each.run.run_id for each in made}
    created = sum(each.created for each in made)
    faults = [] if len(runs) == created == 1 else [f"{len(runs)} runs, {created} of them made"]
    return Outcome({"intakes": count, "runs_made": len(runs)}, faults)


async def _stand(desk: Desk) -> bool:
    """Whether every run has ended or waits for a person."""
    return all(run.state in {"ended", "waiting"} for run in await desk.runs())


def _dead(processes: Sequence[Process]) -> Sequence[str]:
    """Return which processes have ended, though nobody asked them to."""
    return [f"A {p.role} process died." for p in processes if p.process.returncode is not None]
