"""What does a service do under load: runs a minute, the time of a step, memory over many runs.

Runs are queued before two workers begin, each a process that works on one run at a time in real
sandboxes; the gateway is a process of its own, its model scripted and without delay. Every step
writes, so that each has its checkpoint. The memory of the processes is read once the first runs are
done and again at the end.
"""

import asyncio
import tempfile
import time
from pathlib import Path

from frame import Figures, parse_options, report
from turnout.testing.fleet.counting import Counting
from turnout.testing.fleet.desk import Desk
from turnout.testing.fleet.fleet import Process, open_fleet

STEPS = 2
EACH_OF_A_RUN = STEPS + 1
"""The last one says that it is done."""
WORKERS = 2
LONGEST = 3_600.0


def resident_mb(process: Process) -> float:
    """Return the memory of a process."""
    pages = Path(f"/proc/{process.pid}/statm").read_text().split()[1]
    return int(pages) * 4096 / 2**20


async def until_ended(desk: Desk, count: int) -> None:
    """Wait until so many runs have ended; the looks themselves cost next to nothing."""
    async with asyncio.timeout(LONGEST):
        while True:
            if await desk.ended() >= count:
                return
            await asyncio.sleep(0.5)


async def loaded(folder: Path, queued: int, all_runs: int) -> Figures:
    """Work off what is queued, then the rest, and return the figures."""
    async with open_fleet(folder / "state", Counting(), workers=1) as (fleet, desk):
        await desk.order(queued, STEPS)
        gateway = await fleet.start("gateway")
        workers = [await fleet.start("work") for _ in range(WORKERS)]
        started = time.monotonic()
        await until_ended(desk, queued)
        seconds = time.monotonic() - started
        first = [resident_mb(process) for process in (gateway, *workers)]
        while len(desk.names) < all_runs:
            await desk.order(min(queued, all_runs - len(desk.names)), STEPS)
            await until_ended(desk, len(desk.names))
        last = [resident_mb(process) for process in (gateway, *workers)]
        faults = await desk.faults(STEPS)
        assert not faults, faults[0]
    steps = queued * EACH_OF_A_RUN
    return {
        "runs_per_minute": round(queued / seconds * 60, 1),
        "steps_per_second": round(steps / seconds, 1),
        "worker_ms_per_step": round(seconds * WORKERS / steps * 1000, 1),
        "gateway_mb_first": round(first[0], 1),
        "gateway_mb_last": round(last[0], 1),
        "worker_mb_first": round(max(first[1:]), 1),
        "worker_mb_last": round(max(last[1:]), 1),
    }


async def main() -> None:
    """Measure and report."""
    options = parse_options(__doc__ or "")
    queued, all_runs = options.pick(200, 6), options.pick(1_000, 12)
    with tempfile.TemporaryDirectory(prefix="turnout-load-") as name:
        open_to_sandboxes(Path(name))
        figures = await loaded(Path(name), queued, all_runs)
    facts = {"queued": queued, "runs": all_runs, "steps_of_a_run": EACH_OF_A_RUN}
    report("service_load", options, figures, facts={**facts, "workers": WORKERS})


def open_to_sandboxes(folder: Path) -> None:
    """Let the users of sandboxes pass through a folder."""
    folder.chmod(0o711)


if __name__ == "__main__":
    asyncio.run(main())
