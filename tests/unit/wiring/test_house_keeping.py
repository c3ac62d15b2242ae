"""What is old goes while a process serves."""

import asyncio
from datetime import datetime, timedelta
from pathlib import Path

from tests.samples import ENDED, NOON, STARTED

from turnout.core.service.retention import Retention
from turnout.store.database import open_database
from turnout.store.record import RecordStore
from turnout.testing.clock import FrozenClock
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
