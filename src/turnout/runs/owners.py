"""Which runs a living process works on, so that the others can be closed after a crash."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from turnout.core.clock import Clock
from turnout.core.events import RunEnded
from turnout.core.ids import RunId
from turnout.errors import StoreError
from turnout.runs.ports import Owners, RecordStore

__all__ = ["FileOwners", "close_abandoned"]

_NEWEST = 200
"""Every start closes what is abandoned, so older runs have long ended."""


@dataclass(frozen=True, slots=True)
class FileOwners:
    """A folder with a file for each run that is worked on, locked by the process that does."""

    folder: Path

    @contextmanager
    def holding(self, run_id: RunId) -> Iterator[bool]:
        """Own a run until the block ends; False where another process owns it."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self.folder / f"{run_id}.lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                try:
                    yield True
                finally:
                    path.unlink(missing_ok=True)
        finally:
            os.close(descriptor)


async def close_abandoned(store: RecordStore, owners: Owners, clock: Clock) -> tuple[RunId, ...]:
    """End every run on record that nobody works on any more, and return which these were.

    Runs of the service are not among them: they go on.
    """
    closed = []
    for row in await store.rows(limit=_NEWEST):
        if row.outcome is not None or row.state is not None:
            continue
        with owners.holding(row.run_id) as ours:
            if ours and await _close(store, row.run_id, clock):
                closed.append(row.run_id)
    return tuple(closed)


async def _close(store: RecordStore, run_id: RunId, clock: Clock) -> bool:
    end = RunEnded("failed", "The process that worked on it is gone.")
    epoch = await store.take_over(run_id)
    try:
        await store.append(run_id, epoch, end, clock.now())
    except StoreError:
        # It ended after it was listed.
        return False
    return True
