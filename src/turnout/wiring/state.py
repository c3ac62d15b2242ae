"""The state folder: made at first use, and kept from filling up."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

from turnout.core.clock import Clock
from turnout.errors import StoreError, UnfitError
from turnout.runs.record import RunRecords
from turnout.settings import Settings
from turnout.store.database import Database, open_database
from turnout.store.record import RecordStore
from turnout.store.replies import RepliesStore
from turnout.store.responses import ResponsesStore
from turnout.store.turns import TurnsStore

__all__ = ["DATABASE", "database_of", "keep_house", "open_records", "state_folder_of"]

DATABASE: Final = "turnout.db"
"""The database's name in it."""

_EVERY: Final = 600.0
"""Seconds."""
_RESPONSES_FOR: Final = timedelta(days=30)
_TURNS_FOR: Final = timedelta(days=7)
_LOG: Final = logging.getLogger(__name__)


def state_folder_of(settings: Settings) -> Path:
    """Make the state folder; sandboxes of root run under other ids and pass through it."""
    home = settings.home
    try:
        if not home.is_dir():
            home.mkdir(parents=True)
            home.chmod(0o711)
    except OSError as error:
        raise UnfitError(
            f"The state folder {home} cannot be made: {error.strerror}.",
            mend="Set TURNOUT_HOME to a folder that you can write.",
        ) from error
    return home


def database_of(settings: Settings) -> Path | str:
    """Return where the database is: the one that is named, else a file in the state folder."""
    return settings.database or state_folder_of(settings) / DATABASE


@asynccontextmanager
async def open_records(settings: Settings) -> AsyncIterator[RunRecords]:
    """Open the records of past runs."""
    async with open_database(database_of(settings)) as database:
        yield RunRecords(RecordStore(database))


async def keep_house(database: Database, clock: Clock) -> None:
    """Forget old conversations now and every few minutes, until cancelled."""
    responses, turns = ResponsesStore(database), TurnsStore(database, clock)
    replies = RepliesStore(database)
    while True:
        now = clock.now()
        try:
            await responses.forget(now - _RESPONSES_FOR)
            await turns.forget(now - _TURNS_FOR)
            await replies.forget(now)
        except StoreError as error:
            _LOG.warning("Old conversations stay: %s", error)
        await clock.sleep(_EVERY)
