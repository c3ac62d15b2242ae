"""Small transactions that every request makes: done at once, made durable beside.

SQLite takes less time for a transaction of a few statements than Python takes to hand it to a
thread and back. It is therefore done on the event loop, and without waiting: where another
connection holds the write lock it goes the ordinary way. Only the disk is waited for in a thread,
once for all that was committed meanwhile.
"""

import asyncio
import os
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from turnout.errors import StoreError

__all__ = ["QuickWrite", "QuickWrites"]

_CHECKPOINT_AFTER = 256
"""Durable writes between two checkpoints."""


@dataclass(frozen=True, slots=True, eq=False)
class QuickWrite:
    """A write that waits for its turn, then perhaps for the disk."""

    work: Callable[[Any], Any]
    """Takes a cursor of the driver."""
    durable: bool
    """Whether it is to survive a power cut."""
    unheard: Callable[[Any], object] | None
    """Told what was done where nobody waits for it any more."""
    sure: bool
    """Whether it is done even where nobody waits for it any more."""
    done: "asyncio.Future[Any]"

    def succeed(self, result: Any) -> None:
        """Tell whoever waits what was done."""
        if not self.done.done():
            self.done.set_result(result)
        elif self.unheard is not None:
            self.unheard(result)

    def fail(self, error: BaseException) -> None:
        """Tell whoever waits what went wrong."""
        if not self.done.done():
            self.done.set_exception(error)


_Written = list[tuple[QuickWrite, Any]]


class QuickWrites:
    """The quick transactions on one SQLite file, for one event loop."""

    def __init__(
        self,
        path: Path,
        *,
        wait_for_disk: bool,
        otherwise: Callable[[QuickWrite], Awaitable[Any]],
        checkpoint: Callable[[], object],
        sync: Callable[[int], object] = os.fdatasync,
    ) -> None:
        """Do by `otherwise` what cannot be done at once; `checkpoint` must not wait.

        `sync` waits until a file is on the disk.
        """
        self._path = path
        self._wait_for_disk = wait_for_disk
        self._otherwise = otherwise
        self._checkpoint = checkpoint
        self._sync_file = sync
        self._connection: sqlite3.Connection | None = None
        self._waiting: list[QuickWrite] = []
        self._handed_over: set[asyncio.Task[None]] = set()
        self._unsynced: _Written = []
        self._syncing: asyncio.Future[None] | None = None
        self._disk = ThreadPoolExecutor(1, "turnout-store-disk")
        self._log: int | None = None
        self._since_checkpoint = 0

    def add(self, write: QuickWrite) -> None:
        """Do a write in this turn of the event loop, together with all others that come in it."""
        if not self._waiting:
            write.done.get_loop().call_soon(self._flush)
        self._waiting.append(write)

    async def close(self) -> None:
        """Finish what was asked for."""
        while self._waiting or self._handed_over or self._syncing:
            self._flush()
            await asyncio.wait([*self._handed_over, *([self._syncing] if self._syncing else [])])
        await asyncio.to_thread(self._disk.shutdown)
        if self._connection is not None:
            self._connection.close()
        if self._log is not None:
            os.close(self._log)

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        # One that was given up before its turn is not done at all.
        group = [write for write in waiting if write.sure or not write.done.cancelled()]
        written: _Written | None = None
        try:
            # Whatever it is, the ordinary way waits for it, or says what is wrong.
            with suppress(sqlite3.Error, StoreError):
                written = self._transact(group)
        finally:
            if written is None:
                self._hand_over(group)
        for write, result in written or ():
            if write.durable and self._wait_for_disk:
                self._unsynced.append((write, result))
            else:
                write.succeed(result)
        self._sync()

    def _transact(self, group: Sequence[QuickWrite]) -> _Written:
        if not group:
            return []
        if self._connection is None:
            self._connection = _connect(self._path)
        cursor = self._connection.cursor()
        cursor.execute("BEGIN IMMEDIATE")
        try:
            written = [(write, write.work(cursor)) for write in group]
            cursor.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.rollback()
        return written

    def _hand_over(self, group: Sequence[QuickWrite]) -> None:
        for write in group:
            task = asyncio.ensure_future(self._do_otherwise(write))
            self._handed_over.add(task)
            task.add_done_callback(self._handed_over.discard)

    async def _do_otherwise(self, write: QuickWrite) -> None:
        doing = asyncio.ensure_future(self._otherwise(write))
        await asyncio.wait({doing})
        error = doing.exception()
        if error is None:
            write.succeed(doing.result())
        else:
            write.fail(error)

    def _sync(self) -> None:
        if self._syncing is not None or not self._unsynced:
            return
        written, self._unsynced = self._unsynced, []
        loop = asyncio.get_running_loop()
        self._syncing = loop.create_future()
        self._disk.submit(self._sync_and_tell, loop, written)

    def _sync_and_tell(self, loop: asyncio.AbstractEventLoop, written: _Written) -> None:
        """Wait for the disk, in the thread for that."""
        failure = ""
        try:
            self._sync_log()
        except OSError as error:
            failure = f"The database {self._path} did not reach the disk: {error.strerror}."
        # Who closed the loop does not wait any more.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self._synced, written, failure)

    def _synced(self, written: _Written, failure: str) -> None:
        if self._syncing is not None:
            self._syncing.set_result(None)
            self._syncing = None
        for write, result in written:
            if failure:
                write.fail(StoreError(failure, mend="Check the disk that holds it."))
            else:
                write.succeed(result)
        self._since_checkpoint += len(written)
        if self._since_checkpoint >= _CHECKPOINT_AFTER:
            self._since_checkpoint = 0
            self._checkpoint()
        self._sync()

    def _sync_log(self) -> None:
        """Wait until the write-ahead log is on the disk: all that was committed is in there.

        A checkpoint that moved some of it into the database has waited for the disk itself.
        """
        if self._log is None:
            log = self._path.with_name(self._path.name + "-wal")
            self._log = os.open(log, os.O_RDWR | os.O_CLOEXEC)
            folder = os.open(self._path.parent, os.O_RDONLY | os.O_CLOEXEC)
            try:
                # The log's name must be on the disk too.
                os.fsync(folder)
            finally:
                os.close(folder)
        self._sync_file(self._log)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=0, isolation_level=None)
    connection.execute("PRAGMA synchronous = normal")
    connection.execute("PRAGMA foreign_keys = ON")
    # A checkpoint waits for the disk.
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    return connection
