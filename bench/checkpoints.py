"""How much does a checkpoint cost that another machine can restore.

A workspace in which a few files, or five megabytes of text, have been changed is kept: as this
machine alone needs it, in the database of SQLite and of PostgreSQL, and in a folder. Then another
machine, with a state folder of its own, starts a sandbox on what the database holds.
"""

import asyncio
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from frame import Batch, interleave, parse_options, percentile, report
from turnout.core.ids import RunId, new_run_id
from turnout.runs.checkpoints.folder import FolderVault
from turnout.runs.checkpoints.ports import Checkpoints, LocalCheckpoints, Vault
from turnout.runs.checkpoints.shared import SharedCheckpoints
from turnout.sandbox.base import BaseRef, BaseSpec, Command, Limits, Sandbox
from turnout.sandbox.bubblewrap import BubblewrapDriver
from turnout.sandbox.carrying.stacked import StackedShelf
from turnout.store.checkpoints import CheckpointsStore
from turnout.store.database import open_database
from turnout.testing.fleet.postgres import postgres_programs, running_postgres
from turnout.testing.repositories import TinyRepository

MOST = 256 << 20
STEPS = 5
SMALL = "for n in 1 2 3; do seq $n 400 > small$n.txt; done"
LARGE = "for n in $(seq 10); do seq $n 80000 > large$n.txt; done"


@dataclass(frozen=True, slots=True)
class Machine:
    """One state folder and what it makes sandboxes with."""

    driver: BubblewrapDriver
    base: BaseRef

    async def sandbox(self) -> Sandbox:
        """Start one at base."""
        return await self.driver.create(new_run_id(), self.base, Limits())


def bash(text: str) -> Command:
    """Return a command of a shell."""
    return Command(("bash", "-c", text))


@contextmanager
def working_folder() -> Iterator[Path]:
    """Make a folder that sandboxes of root reach into, until the block ends."""
    with tempfile.TemporaryDirectory(prefix="turnout-bench-") as name:
        Path(name).chmod(0o711)
        yield Path(name)


async def machine(folder: Path, repository: TinyRepository) -> Machine:
    """Prepare one."""
    driver = BubblewrapDriver(folder, streams=True)
    spec = BaseSpec(str(repository), repository.head, requirements=())
    return Machine(driver, await driver.prepare(spec))


async def kept(here: Machine, change: str, checkpoints: Checkpoints) -> Sequence[float]:
    """Return what the checkpoint after each of some steps took, in milliseconds."""
    samples = []
    run_id = new_run_id()
    sandbox = await here.sandbox()
    try:
        await sandbox.run(bash(change))
        for step in range(STEPS):
            await sandbox.run(bash(f"echo {step} >> small1.txt"))
            started = time.perf_counter()
            layer = await sandbox.snapshot()
            why = await checkpoints.keep(run_id, 1, layer)
            samples.append((time.perf_counter() - started) * 1000)
            if why:
                raise RuntimeError(why)
            await checkpoints.settle(run_id, 1, layer)
    finally:
        await sandbox.close()
    await checkpoints.forget(run_id)
    return samples


async def restored(here: Machine, there: Machine, change: str, vault: Vault) -> Sequence[float]:
    """Return what another machine takes until a sandbox stands on what this one has kept."""
    run_id = RunId(new_run_id())
    sandbox = await here.sandbox()
    try:
        # Another text each time, so that nothing is there yet.
        await sandbox.run(bash(f"{change}; echo {run_id} > run.txt"))
        layer = await sandbox.snapshot()
        await SharedCheckpoints(StackedShelf(here.driver), vault, MOST).keep(run_id, 1, layer)
    finally:
        await sandbox.close()
    other = SharedCheckpoints(StackedShelf(there.driver), vault, MOST)
    started = time.perf_counter()
    layer = await other.restore(run_id, there.base, layer)
    sandbox = await there.driver.create(run_id, there.base, Limits(), layer=layer)
    took = (time.perf_counter() - started) * 1000
    await sandbox.close()
    await other.forget(run_id)
    return [took]


async def main() -> None:
    """Measure all places in turns."""
    options = parse_options(__doc__ or "")
    async with AsyncExitStack() as stack:
        root = stack.enter_context(working_folder())
        repository = TinyRepository(root / "tiny", {"a.txt": "a\n"})
        here, there = [await machine(root / name, repository) for name in ("here", "there")]
        vaults = await _vaults(root, stack)
        places: dict[str, Checkpoints] = {"local": LocalCheckpoints()}
        for name, vault in vaults.items():
            places[name] = SharedCheckpoints(StackedShelf(here.driver), vault, MOST)
        cases: dict[str, Batch] = {
            f"{place}_{size}": partial(kept, here, change, checkpoints)
            for size, change in (("small", SMALL), ("large", LARGE))
            for place, checkpoints in places.items()
        }
        cases |= {
            f"restore_{name}_small": partial(restored, here, there, SMALL, vault)
            for name, vault in vaults.items()
        }
        samples = await interleave(cases, rounds=options.pick(8, 1), warm_up=options.pick(1, 0))
        for each in (here, there):
            await each.driver.close()
    figures = {
        f"{name}_p50_ms": round(percentile(found, 0.5), 2) for name, found in samples.items()
    }
    report("checkpoints", options, figures, facts={"steps": STEPS})


async def _vaults(root: Path, stack: AsyncExitStack) -> Mapping[str, Vault]:
    """Open every place that other machines reach."""
    programs = postgres_programs()
    where: dict[str, Path | str] = {"sqlite": root / "turnout.db"}
    if programs is not None:
        where["postgresql"] = stack.enter_context(running_postgres(programs)).url
    vaults: dict[str, Vault] = {"folder": FolderVault(root / "shared")}
    for name, place in where.items():
        vaults[name] = CheckpointsStore(await stack.enter_async_context(open_database(place)))
    return vaults


if __name__ == "__main__":
    asyncio.run(main())
