"""Transactions off the event loop: one thread hop each, writes in order."""

import asyncio
import importlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.sql import ClauseElement

from turnout.errors import ConfigError, StoreError
from turnout.store.dialects import (
    Durability,
    explain,
    is_victim,
    postgres_engine,
    reading,
    relax,
    sqlite_engine,
)
from turnout.store.prepared import Insert, Prepared
from turnout.store.quick import QuickWrite, QuickWrites
from turnout.store.revision import create_tables, is_at_head, is_empty

__all__ = ["Database", "database_at", "open_database", "sqlite_path"]

T = TypeVar("T")

_GROUP = 64
_TRIES = 5
_POSTGRES = ("postgresql://", "postgres://", "postgresql+psycopg://")


@dataclass(frozen=True, slots=True, eq=False)
class _Write:
    """A write that waits for its turn."""

    work: Callable[[Connection], Any]
    relaxed: bool
    """Whether it need not survive a power cut."""
    unheard: Callable[[Any], object] | None
    """Told what was done where nobody waits for it any more."""
    sure: bool
    """Whether it is done even where nobody waits for it any more."""
    loop: asyncio.AbstractEventLoop
    done: "asyncio.Future[_Outcome]"


class _Outcome(NamedTuple):
    committed: bool
    """False: it was rolled back for what it raised."""
    result: Any = None


_UNDONE = _Outcome(committed=False)


class _Lane:
    """One thread and the one connection that it keeps."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self._connection: Connection | None = None
        self._failures = (SQLAlchemyError, engine.dialect.loaded_dbapi.Error)
        self.thread = ThreadPoolExecutor(1, f"turnout-store-{name}")

    def transact(self, work: Callable[[Connection], T], *, relaxed: bool = False) -> T:
        """Return what `work` did once it is committed; only for the lane's own thread.

        Transactions of several runs at once, as a commit that many share is one, may lock each
        other's lines: one of them is undone then, and done again here.
        """
        undone = 0
        while True:
            try:
                if self._connection is None:
                    self._connection = self._engine.connect()
                relax(self._connection, relaxed=relaxed)
                with self._connection.begin():
                    return work(self._connection)
            except self._failures as error:
                self._forget_broken()
                undone += 1
                if undone == _TRIES or not is_victim(error):
                    raise explain(error, self._engine) from error

    def _forget_broken(self) -> None:
        """Let the next transaction connect anew where the database went away."""
        if self._connection is not None and self._connection.invalidated:
            self._connection.close()
            self._connection = None

    def checkpoint(self) -> None:
        """Move what is in the write-ahead log of SQLite to where it belongs, as far as can be."""
        if self._connection is not None:
            # Outside of any transaction, of which SQLAlchemy would begin one.
            driver: Any = self._connection.connection.driver_connection
            with suppress(*self._failures):
                driver.execute("PRAGMA wal_checkpoint(PASSIVE)")

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

    def __init__(self, engine: Engine, *, quick: Path | None = None, durable: bool = True) -> None:
        """Do quick writes on the SQLite file `quick` at once; None: like all others."""
        self._engine = engine
        self._quick = None if quick is None else self._quick_writes(quick, durable=durable)
        self._reads = _Lane(reading(engine), "read")
        self._writes = _Lane(engine, "write")
        self._waiting: deque[_Write] = deque()
        self._awake = False
        """Whether the lane was told of all that waits."""

    @property
    def engine(self) -> Engine:
        """For what needs a connection of its own."""
        return self._engine

    def prepare(self, build: Callable[[Insert], ClauseElement]) -> Prepared:
        """Return a statement that is compiled once, for this kind of database."""
        return Prepared(build, self._engine.dialect)

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Return what `work` finds in one consistent view; `StoreError` where it cannot."""
        return await self._alone(self._reads, work)

    async def write(
        self,
        work: Callable[[Connection], T],
        *,
        relaxed: bool = False,
        unheard: Callable[[T], object] | None = None,
        sure: bool = False,
    ) -> T:
        """Return what `work` did once it is committed; what it raises undoes it.

        A `relaxed` write does not wait for the disk: it outlives the process at once, and a power
        cut from the next write that does wait.
        Writes that wait at the same time share one commit. Where one of several fails, each is
        done again in a transaction of its own.
        Where the caller is cancelled after its turn has come, the write is done all the same;
        `unheard` is then called with its result. A `sure` write is done whenever that happens.
        """
        loop = asyncio.get_running_loop()
        write = _Write(work, relaxed, unheard, sure, loop, loop.create_future())
        self._waiting.append(write)
        self._wake()
        try:
            outcome = await write.done
        except asyncio.CancelledError:
            # Else the future was cancelled with us, and `_tell` will find it so.
            done = write.done
            if done.done() and not done.cancelled() and done.exception() is None:
                _tell_unheard(write, done.result())
            raise
        if not outcome.committed:
            return await self._alone(self._writes, work)
        result: T = outcome.result
        return result

    async def quick(
        self,
        work: Callable[[DBAPICursor], T],
        *,
        durable: bool,
        unheard: Callable[[T], object] | None = None,
        sure: bool = False,
    ) -> T:
        """Write as `write` does, where it takes a few statements that every request makes.

        `work` gets the driver's own cursor. On SQLite it is run on the event loop.
        """
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        write = QuickWrite(work, durable, unheard, sure, done)
        if self._quick is None:
            result: T = await self._do_ordinarily(write)
            return result
        self._quick.add(write)
        try:
            return await done
        except asyncio.CancelledError:
            if done.done() and not done.cancelled() and done.exception() is None:
                write.succeed(done.result())
            raise

    async def migrate(self) -> None:
        """Bring the tables to the newest form; `StoreError` where a newer Turnout made them."""
        if await self.read(is_empty):
            await self.write(create_tables)
        if not await self.read(is_at_head):
            # Alembic takes a quarter of a second to load, and is hardly ever needed.
            await self.write(importlib.import_module("turnout.store.migrate").upgrade)

    async def close(self) -> None:
        """Finish the transactions that were asked for and close every connection."""
        loop = asyncio.get_running_loop()
        if self._quick is not None:
            await self._quick.close()
        while self._waiting:
            await loop.run_in_executor(self._writes.thread, self._commit_waiting)
        for lane in (self._writes, self._reads):
            await asyncio.to_thread(lane.close)
        self._engine.dispose()

    def _quick_writes(self, path: Path, *, durable: bool) -> QuickWrites:
        return QuickWrites(
            path,
            wait_for_disk=durable,
            otherwise=self._do_ordinarily,
            checkpoint=lambda: self._writes.thread.submit(self._writes.checkpoint),
        )

    async def _do_ordinarily(self, write: QuickWrite) -> Any:
        return await self.write(
            lambda connection: write.work(connection.connection.cursor()),
            relaxed=not write.durable,
            unheard=write.unheard,
            sure=write.sure,
        )

    async def _alone(self, lane: _Lane, work: Callable[[Connection], T]) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(lane.thread, lane.transact, work)

    def _wake(self) -> None:
        if not self._awake:
            self._awake = True
            self._writes.thread.submit(self._commit_waiting)

    def _commit_waiting(self) -> None:
        """Commit some of what waits, in the thread of the lane."""
        # Before the look: whoever comes after it tells the lane again.
        self._awake = False
        group = [self._waiting.popleft() for _ in range(min(_GROUP, len(self._waiting)))]
        try:
            # One that was given up before its turn is not done at all.
            self._commit([write for write in group if write.sure or not write.done.cancelled()])
        finally:
            if self._waiting:
                self._wake()

    def _commit(self, group: Sequence[_Write]) -> None:
        if not group:
            return
        outcomes: Sequence[_Outcome | StoreError] = ()
        begun = False

        def together(connection: Connection) -> Sequence[_Outcome]:
            nonlocal begun
            begun = True
            return [_Outcome(True, write.work(connection)) for write in group]

        try:
            relaxed = all(write.relaxed for write in group)
            outcomes = self._writes.transact(together, relaxed=relaxed)
        except StoreError as error:
            # Where not even the transaction began, none of them has anything to hope for.
            if len(group) == 1 or not begun:
                outcomes = [error] * len(group)
        finally:
            if outcomes or len(group) == 1:
                _tell_all(group, outcomes or [_UNDONE])
            else:
                self._commit_each(group)

    def _commit_each(self, group: Sequence[_Write]) -> None:
        # Each is done whatever becomes of those before it.
        with ExitStack() as stack:
            for write in reversed(group):
                stack.callback(self._commit, [write])


def _tell_all(group: Sequence[_Write], outcomes: Sequence[_Outcome | StoreError]) -> None:
    told = zip(group, outcomes, strict=True)
    for loop, some in groupby(told, lambda one: one[0].loop):
        # A loop that was closed meanwhile has nobody left who waits.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_tell, list(some))


def _tell(outcomes: Sequence[tuple[_Write, _Outcome | StoreError]]) -> None:
    for write, outcome in outcomes:
        if write.done.done():
            _tell_unheard(write, outcome)
        elif isinstance(outcome, StoreError):
            write.done.set_exception(outcome)
        else:
            write.done.set_result(outcome)


def _tell_unheard(write: _Write, outcome: _Outcome | StoreError) -> None:
    if write.unheard is not None and isinstance(outcome, _Outcome) and outcome.committed:
        write.unheard(outcome.result)


@asynccontextmanager
async def open_database(
    where: Path | str, *, durability: Durability = "full", busy_timeout: float = 10.0
) -> AsyncIterator[Database]:
    """Open a database, its tables migrated, and close it at the end.

    `where` is the path of an SQLite file, which is created where it is missing, an `sqlite:///` URL
    or a `postgresql://` URL. `busy_timeout` is how many seconds a write waits for other processes,
    and a connection for its server.
    """
    database = database_at(where, durability=durability, busy_timeout=busy_timeout)
    try:
        await database.migrate()
        yield database
    finally:
        await database.close()


def database_at(
    where: Path | str, *, durability: Durability = "full", busy_timeout: float = 10.0
) -> Database:
    """Return a database whose tables are left as they are; whoever asks closes it."""
    path = sqlite_path(where)
    if path is None:
        return Database(postgres_engine(str(where), connect_timeout=busy_timeout))
    engine = sqlite_engine(path, durability=durability, busy_timeout=busy_timeout)
    return Database(engine, quick=path, durable=durability == "full")


def sqlite_path(where: Path | str) -> Path | None:
    """Return the file of an SQLite database; None for one of PostgreSQL, `ConfigError` for none."""
    return None if str(where).startswith(_POSTGRES) else _path(where)


def _path(where: Path | str) -> Path:
    text = str(where).removeprefix("sqlite:///")
    if "://" in text or text in {"", ":memory:"}:
        shown = f"{text.partition('://')[0]}://…" if "://" in text else text or "An empty text"
        message = f"{shown!r} names no database that Turnout can use."
        raise ConfigError(message, mend="Give the path of a file, or a `postgresql://` URL.")
    return Path(text)
