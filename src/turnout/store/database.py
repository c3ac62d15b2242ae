"""Transactions off the event loop: one thread hop each, writes in order."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from turnout.errors import ConfigError, StoreError
from turnout.store.dialects import Durability, explain, reading, relax, sqlite_engine
from turnout.store.migrate import is_at_head, upgrade

__all__ = ["Database", "open_database"]

T = TypeVar("T")

_GROUP = 64


@dataclass(frozen=True, slots=True, eq=False)
class _Write:
    """A write that waits for its turn."""

    work: Callable[[Connection], Any]
    relaxed: bool
    """Whether it need not survive a power cut."""
    done: "Future[_Committed | None]" = field(default_factory=Future)
    """None where the group it was in was rolled back."""


@dataclass(frozen=True, slots=True)
class _Committed:
    result: Any


class _Lane:
    """One thread and the one connection that it keeps."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self._connection: Connection | None = None
        self.thread = ThreadPoolExecutor(1, f"turnout-store-{name}")

    def transact(self, work: Callable[[Connection], T], *, relaxed: bool = False) -> T:
        """Return what `work` did once it is committed; only for the lane's own thread."""
        try:
            if self._connection is None:
                self._connection = self._engine.connect()
            relax(self._connection, relaxed=relaxed)
            with self._connection.begin():
                return work(self._connection)
        except SQLAlchemyError as error:
            raise explain(error, self._engine) from error

    def close(self) -> None:
        """Wait for the transactions that were asked for, then close the connection."""
        self.thread.shutdown()
        if self._connection is not None:
            self._connection.close()


class Database:
    """A database whose transactions run in threads of its own; made by `open_database`.

    The functions it is given get a connection inside a transaction. They may be called a second
    time after a rollback, so they do nothing but use the connection.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._reads = _Lane(reading(engine), "read")
        self._writes = _Lane(engine, "write")
        self._waiting: deque[_Write] = deque()

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Return what `work` finds in one consistent view; `StoreError` where it cannot."""
        return await self._alone(self._reads, work)

    async def write(self, work: Callable[[Connection], T], *, relaxed: bool = False) -> T:
        """Return what `work` did once it is committed; what it raises undoes it.

        A `relaxed` write does not wait for the disk: it outlives the process at once, and a power
        cut from the next write that does wait.
        Writes that wait at the same time share one commit. Where one of several fails, each is
        done again in a transaction of its own.
        """
        write = _Write(work, relaxed)
        self._waiting.append(write)
        self._writes.thread.submit(self._commit_waiting)
        committed = await asyncio.wrap_future(write.done)
        if committed is None:
            return await self._alone(self._writes, work)
        result: T = committed.result
        return result

    async def migrate(self) -> None:
        """Bring the tables to the newest form; `StoreError` where a newer Turnout made them."""
        if not await self.read(is_at_head):
            await self.write(upgrade)

    async def close(self) -> None:
        """Finish the transactions that were asked for and close every connection."""
        for lane in (self._writes, self._reads):
            await asyncio.to_thread(lane.close)
        self._engine.dispose()

    async def _alone(self, lane: _Lane, work: Callable[[Connection], T]) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(lane.thread, lane.transact, work)

    def _commit_waiting(self) -> None:
        group = [
            write
            for write in (self._waiting.popleft() for _ in range(min(_GROUP, len(self._waiting))))
            if write.done.set_running_or_notify_cancel()
        ]
        if not group:
            return
        results: list[_Committed] | None = None
        failure: StoreError | None = None
        try:
            results = self._writes.transact(
                lambda connection: [_Committed(write.work(connection)) for write in group],
                relaxed=all(write.relaxed for write in group),
            )
        except StoreError as error:
            failure = error if len(group) == 1 else None
        finally:
            for place, write in enumerate(group):
                if failure is not None:
                    write.done.set_exception(failure)
                else:
                    write.done.set_result(results[place] if results else None)


@asynccontextmanager
async def open_database(
    where: Path | str, *, durability: Durability = "full", busy_timeout: float = 10.0
) -> AsyncIterator[Database]:
    """Open a database, its tables migrated, and close it at the end.

    `where` is the path of an SQLite file, which is created where it is missing, or an
    `sqlite:///` URL. `busy_timeout` is how many seconds a write waits for other processes.
    """
    database = Database(
        sqlite_engine(_path(where), durability=durability, busy_timeout=busy_timeout)
    )
    try:
        await database.migrate()
        yield database
    finally:
        await database.close()


def _path(where: Path | str) -> Path:
    text = str(where).removeprefix("sqlite:///")
    if "://" in text or text in {"", ":memory:"}:
        message = f"{text or 'An empty text'!r} names no database that Turnout can use."
        raise ConfigError(message, mend="Give the path of a file.")
    return Path(text)
