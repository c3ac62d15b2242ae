"""What is old goes while a process serves."""

import asyncio
import os
import time
from datetime import datetime, timedelta
from pathlib import Path

from tests.samples import ENDED, NOON, STARTED

from turnout.core.service.retention import Retention
from turnout.runs.checkpoints.folder import FolderVault
from turnout.store.database import open_database
from turnout.store.record import RecordStore
from turnout.testing.clock import FrozenClock
from turnout.wiring.serving.checkpoints import keep_swept
from turnout.wiring.serving.durable import keep_disk
from turnout.wiring.state import keep_house


class LaterClock(FrozenClock):
    """Two days after noon; the long pause between two looks lasts until it is told to end."""

    def __init__(self) -> None:
        super().__init__()
        self.looked = asyncio.Event()

    def now(self) -> datetime:
        """Return the moment."""
        return NOON + timedelta(days=2)

    async def sleep(self, seconds: float) -> None:
        """Let a short pause pass at once."""
        if seconds > 60:
            self.looked.set()
            await asyncio.Event().wait()


async def test_a_run_goes_when_it_is_older_than_is_kept(tmp_path: Path) -> None:
    """With the first look, without anybody asking; the newer one stays."""
    clock = LaterClock()
    async with open_database(tmp_path / "turnout.db") as database:
        records = RecordStore(database)
        for name, at in (("run-old", NOON), ("run-new", clock.now())):
            await records.begin(name, STARTED, at)
            await records.append(name, 1, ENDED, at)
        keeping = asyncio.create_task(
            keep_house(database, clock, Retention(runs=timedelta(days=1)))
        )
        async with asyncio.timeout(10):
            await clock.looked.wait()
        keeping.cancel()
        await asyncio.wait({keeping}, timeout=10)
        assert [row.run_id for row in await records.rows()] == ["run-new"]


async def test_a_shared_folder_gives_back_the_checkpoints_of_runs_that_ended(
    tmp_path: Path,
) -> None:
    """Those that could not be dropped at the end; runs that nobody knows are another service's."""
    clock, folder = LaterClock(), tmp_path / "shared"
    async with open_database(tmp_path / "turnout.db") as database:
        records = RecordStore(database)
        for name in ("run-over", "run-on"):
            await records.begin(name, STARTED, NOON)
        await records.append("run-over", 1, ENDED, NOON)
        for name in ("run-over", "run-on", "run-other", ".snapshot"):
            (folder / name).mkdir(parents=True)
            (folder / name / "a.1.like").write_bytes(b"x")
        keeping = asyncio.create_task(keep_swept(FolderVault(folder), records, clock))
        async with asyncio.timeout(10):
            await clock.looked.wait()
        keeping.cancel()
        await asyncio.wait({keeping}, timeout=10)
        assert await FolderVault(tmp_path / "none").sweep(records.ended) == 0
    assert {path.name for path in folder.iterdir()} == {"run-on", "run-other", ".snapshot"}


async def test_a_disk_gives_back_what_no_run_has_used_for_long(tmp_path: Path) -> None:
    """Checkpoints of runs that ended, above all; what was used lately stays."""
    for name, days in (("old", 40), ("new", 3)):
        layer = tmp_path / "kept" / name
        (layer / "layer").mkdir(parents=True)
        used = time.time() - 86_400 * days
        os.utime(layer, (used, used))
    clock = LaterClock()
    keeping = asyncio.create_task(keep_disk(tmp_path, clock, Retention()))
    async with asyncio.timeout(10):
        await clock.looked.wait()
    keeping.cancel()
    await asyncio.wait({keeping}, timeout=10)
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["new"]
