"""Tells the workers of other machines at once that a run is queued, where the database can."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import SQLAlchemyError

from turnout.store.database import Database

__all__ = ["listening", "ring"]

_RING: Final = text("NOTIFY turnout_runs")
_LISTEN: Final = "LISTEN turnout_runs"
_LOOK: Final = 1.0
"""Seconds between looks whether to go on listening, and before another try after a failure."""


def ring(connection: Connection) -> None:
    """Ring once the transaction is committed; whoever hears nothing looks now and then anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(_RING)


@asynccontextmanager
async def listening(database: Database, heard: Callable[[], None]) -> AsyncIterator[None]:
    """Call `heard` on the event loop for each ring, over a connection of its own.

    SQLite cannot ring. Rings during an outage are lost.
    """
    if database.engine.dialect.name != "postgresql":
        yield
        return
    ear = _Ear(database.engine, heard, asyncio.get_running_loop())
    with ThreadPoolExecutor(1, "turnout-store-bell") as thread:
        heeding = asyncio.wrap_future(thread.submit(ear.listen))
        try:
            yield
        finally:
            ear.stop()
            # Else it would not look before its second is over.
            with suppress(*ear.failures):
                await asyncio.to_thread(ear.wake)
            await heeding


class _Ear:
    def __init__(
        self, engine: Engine, heard: Callable[[], None], loop: asyncio.AbstractEventLoop
    ) -> None:
        self._engine = engine
        self._heard = heard
        self._loop = loop
        self._stopping = threading.Event()
        self.failures = (SQLAlchemyError, engine.dialect.loaded_dbapi.Error)

    def stop(self) -> None:
        """Hear nothing more."""
        self._stopping.set()

    def wake(self) -> None:
        """Ring for ourselves."""
        with self._engine.begin() as connection:
            ring(connection)

    def listen(self) -> None:
        """Listen until told to stop, over any outage."""
        while not self._stopping.is_set():
            with suppress(*self.failures):
                self._listen()
            self._stopping.wait(_LOOK)

    def _listen(self) -> None:
        pooled = self._engine.raw_connection()
        driver: Any = pooled.driver_connection
        # It listens, which no other user of a connection may find.
        pooled.detach()
        try:
            driver.autocommit = True
            driver.execute(_LISTEN)
            while not self._stopping.is_set():
                for _ in driver.notifies(timeout=_LOOK, stop_after=1):
                    self._loop.call_soon_threadsafe(self._heard)
        finally:
            driver.close()
