"""Runs whose process is gone are closed, and those of living ones left alone."""

import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.runs.parts import COMMIT, TASK, Room

from turnout.core.events import RunEnded, RunStarted
from turnout.core.ids import RunId
from turnout.errors import StaleEpochError, StoreError
from turnout.runs.owners import FileOwners, close_abandoned
from turnout.testing.clock import FrozenClock
from turnout.testing.stores import MemoryRecordStore

RUN = RunId("run-00000000ab5e")
AT = datetime(2026, 1, 1, tzinfo=UTC)
OWNER = """
import sys
from pathlib import Path
from turnout.runs.owners import FileOwners
with FileOwners(Path(sys.argv[1])).holding(sys.argv[2]) as ours:
    print(ours, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
async def store() -> MemoryRecordStore:
    """Make a store with one run that has no end."""
    made = MemoryRecordStore()
    await made.begin(RUN, RunStarted(TASK, COMMIT, "loop"), AT)
    return made


async def test_a_run_of_a_killed_process_is_closed(
    tmp_path: Path, store: MemoryRecordStore
) -> None:
    """While its process lives it is left alone; afterwards its record says what became of it."""
    owners, pipe = FileOwners(tmp_path / "running"), asyncio.subprocess.PIPE
    owner = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OWNER, str(owners.folder), RUN, stdin=pipe, stdout=pipe
    )
    assert owner.stdout is not None
    assert await owner.stdout.readline() == b"True\n"
    assert await close_abandoned(store, owners, FrozenClock()) == ()
    owner.kill()
    await owner.wait()
    assert await close_abandoned(store, owners, FrozenClock()) == (RUN,)
    assert (await store.entries(RUN))[-1].event == RunEnded(
        "failed", "The process that worked on it is gone."
    )
    assert not list(owners.folder.iterdir())
    assert await close_abandoned(store, owners, FrozenClock()) == ()


async def test_a_closed_run_takes_nothing_more_from_its_old_worker(
    tmp_path: Path, store: MemoryRecordStore
) -> None:
    """Should it not be dead after all, its epoch is over."""
    await close_abandoned(store, FileOwners(tmp_path), FrozenClock())
    with pytest.raises((StaleEpochError, StoreError)):
        await store.append(RUN, 1, RunEnded("answered", ""), AT)


async def test_a_run_is_owned_from_before_its_record_until_after_its_end() -> None:
    """There is no moment at which a living run looks abandoned."""
    room = Room()
    seen = []

    async def look() -> None:
        seen.extend(room.owners.held)

    room.agent.events = (look, *room.agent.events)
    await room.run()
    assert seen == [room.entries[0].run_id]
    assert room.owners.held == []


def test_one_process_at_a_time_owns_a_run(tmp_path: Path) -> None:
    """The second is told so and disturbs nothing."""
    owners = FileOwners(tmp_path)
    with owners.holding(RUN) as first, owners.holding(RUN) as second:
        assert (first, second) == (True, False)
    with owners.holding(RUN) as again:
        assert again
