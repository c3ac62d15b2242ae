"""Is our own queue on PostgreSQL as good as Procrastinate's, and what does each cost.

Two worker processes each, one process that orders, one database each on a server of our own. From
the order to the start of the run; from the death of a worker to the start of its run elsewhere;
transactions a second while nothing is to be done. Signs of life every second and dead after five
of them, for both. Procrastinate is measured where its command is on the path.
"""

import asyncio
import importlib.metadata
import inspect
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Connection, text

from children import bound
from frame import Figures, Options, parse_options, percentile, report
from turnout.runs.durable import engine, turns
from turnout.store.database import open_database
from turnout.testing.fleet.postgres import empty_database, postgres_programs, running_postgres

HERE = Path(__file__).parent / "queues"
LONGEST = 60.0
_COMMITS = text("SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = :name")


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue: what runs it, on which database."""

    command: Sequence[str]
    url: str
    database: str


@dataclass(slots=True)
class Process:
    """One process of a queue."""

    name: str
    process: asyncio.subprocess.Process
    said: dict[str, float] = field(default_factory=dict)
    """The moment of each run."""
    reading: "asyncio.Task[None] | None" = None

    async def hear(self) -> None:
        """Note what it says."""
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            _, run, at = line.decode().split()
            self.said[run] = float(at)

    async def until(self, run: str) -> float:
        """Return the moment at which it said so."""
        async with asyncio.timeout(LONGEST):
            while True:
                if run in self.said:
                    return self.said[run]
                await asyncio.sleep(0.01)

    async def tell(self, run: str) -> None:
        """Have a run ordered."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{run}\n".encode())
        await self.process.stdin.drain()


@asynccontextmanager
async def process(queue: Queue, what: str, name: str) -> AsyncIterator[Process]:
    """Run one until the block ends."""
    pipe = asyncio.subprocess.PIPE
    argv = bound([*queue.command, what, queue.url, name], "KILL")
    started = Process(name, await asyncio.create_subprocess_exec(*argv, stdin=pipe, stdout=pipe))
    started.reading = asyncio.create_task(started.hear())
    try:
        await started.until("ready")
        yield started
    finally:
        if started.process.returncode is None:
            started.process.kill()
        await started.process.wait()
        await started.reading


async def measured(queue: Queue, options: Options) -> Figures:
    """Measure one queue."""
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(process(queue, "work", "w1"))
        second = await stack.enter_async_context(process(queue, "work", "w2"))
        orders = await stack.enter_async_context(process(queue, "order", "o"))
        database = await stack.enter_async_context(open_database(queue.url))
        await asyncio.sleep(2)

        async def commits() -> int:
            def count(connection: Connection) -> int:
                named = {"name": queue.database}
                return int(connection.execute(_COMMITS, named).scalar_one())

            return await database.read(count)

        seconds = options.pick(30, 5)
        before = await commits()
        await asyncio.sleep(seconds)
        idle = (await commits() - before) / seconds
        waits = []
        for number in range(options.pick(60, 8)):
            run = f"run-{number}"
            await orders.tell(run)
            ordered = await orders.until(run)
            waits.append((await either(first, second, run)) - ordered)
            # So that orders come at any moment between two looks.
            await asyncio.sleep(0.1 + 0.037 * (number % 7))
        await orders.tell("held")
        await either(first, second, "held")
        dead, other = (first, second) if "held" in first.said else (second, first)
        dead.process.send_signal(signal.SIGKILL)
        died = time.monotonic()
        taken_over = await other.until("held") - died
    return {
        "order_to_start_p50_ms": round(percentile([waits], 0.5) * 1000, 1),
        "order_to_start_p99_ms": round(percentile([waits], 0.99) * 1000, 1),
        "take_over_s": round(taken_over, 2),
        "idle_transactions_per_s": round(idle, 1),
    }


async def either(one: Process, other: Process, run: str) -> float:
    """Return the moment at which one of both started a run."""
    async with asyncio.timeout(LONGEST):
        while True:
            for each in (one, other):
                if run in each.said:
                    return each.said[run]
            await asyncio.sleep(0.005)


def peer() -> str | None:
    """Return the python in which Procrastinate is installed; None where it is not."""
    program = shutil.which("procrastinate")
    return None if program is None else str(Path(program).parent / "python")


def weight(python: str) -> Figures:
    """Return what Procrastinate would add to what we have installed."""
    script = str(HERE / "procrastinate_queue.py")
    said = subprocess.run([python, script, "weigh"], check=True, capture_output=True, text=True)
    found = json.loads(said.stdout)
    ours = {each.name.lower() for each in importlib.metadata.distributions()}
    return {
        "packages": len(found["packages"]),
        "packages_that_we_lack": len(set(found["packages"]) - ours),
        "megabytes": round(found["bytes"] / 2**20, 1),
        "lines": found["lines"],
    }


async def main() -> None:
    """Measure both, one after the other."""
    options = parse_options(__doc__ or "")
    programs = postgres_programs()
    if programs is None:
        sys.exit("PostgreSQL is not installed.")
    python, theirs = peer(), None
    with running_postgres(programs) as server:
        with empty_database(server.url, "ours") as url:
            command = [sys.executable, str(HERE / "ours.py")]
            figures = await measured(Queue(command, url, "ours"), options)
        if python is not None:
            with empty_database(server.url, "theirs") as url:
                command = [python, str(HERE / "procrastinate_queue.py")]
                theirs = {
                    **await measured(Queue(command, url, "theirs"), options),
                    **weight(python),
                }
    lines = sum(inspect.getsource(part).count("\n") for part in (engine, turns))
    figures = {**figures, "packages": 0, "packages_that_we_lack": 0, "lines": lines}
    report("run_queue", options, figures, peers={"procrastinate": theirs})


if __name__ == "__main__":
    asyncio.run(main())
