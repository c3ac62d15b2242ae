"""The state folder: made at first use, and kept from filling up."""

import logging
import os
import pwd
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

from turnout.core.clock import Clock, SystemClock
from turnout.core.service.discretion import discreet
from turnout.core.service.retention import Forgotten, Retention
from turnout.errors import StoreError, UnfitError
from turnout.runs.record import RunRecords
from turnout.runs.spend.reconcile import Reconciler
from turnout.settings import Settings
from turnout.store.audit import AuditStore
from turnout.store.audited import Hand
from turnout.store.checkpoints import CheckpointsStore
from turnout.store.database import Database, open_database
from turnout.store.record import RecordStore
from turnout.store.replies import RepliesStore
from turnout.store.responses import ResponsesStore
from turnout.store.retention import RetentionStore
from turnout.store.spend import SpendStore
from turnout.store.turns import TurnsStore

__all__ = [
    "DATABASE",
    "database_of",
    "discreet_of",
    "forget_old",
    "hand_of",
    "keep_house",
    "open_audit",
    "open_records",
    "open_spend",
    "results_folder_of",
    "state_folder_of",
]

DATABASE: Final = "turnout.db"
"""The database's name in it."""

_EVERY: Final = 600.0
"""Seconds."""
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


def results_folder_of(settings: Settings) -> Path:
    """Return the folder of evaluations' results that the console shows; it need not be there."""
    return state_folder_of(settings) / "evaluations"


def discreet_of(settings: Settings) -> Callable[[str], str]:
    """Return what takes places of this machine out of texts that others read."""
    home, state = Path.home(), settings.home
    names = {
        str(home): "~",
        str(state): "the state folder",
        str(state.resolve()): "the state folder",
    }
    named = settings.service.repositories.named
    return discreet(names | {place: name for name, place in named.items()})


def database_of(settings: Settings) -> Path | str:
    """Return where the database is: the one that is named, else a file in the state folder."""
    return settings.database or state_folder_of(settings) / DATABASE


@asynccontextmanager
async def open_records(settings: Settings) -> AsyncIterator[RunRecords]:
    """Open the records of past runs."""
    async with open_database(database_of(settings)) as database:
        yield RunRecords(RecordStore(database))


@asynccontextmanager
async def open_spend(settings: Settings) -> AsyncIterator[tuple[RunRecords, Reconciler]]:
    """Open the records of past runs, and what compares them with the gateway's receipts."""
    clock = SystemClock()
    async with open_database(database_of(settings)) as database:
        store = RecordStore(database)
        yield RunRecords(store), Reconciler(store, SpendStore(database, clock), clock)


@asynccontextmanager
async def open_audit(settings: Settings) -> AsyncIterator[AuditStore]:
    """Open what was changed, by whom."""
    async with open_database(database_of(settings)) as database:
        yield AuditStore(database)


def hand_of(database: Database, clock: Clock) -> Hand:
    """Return whoever runs the command, by the name under which changes are put on record."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = f"user {os.getuid()}"
    return Hand(AuditStore(database), clock, f"{name}@{socket.gethostname()}")


async def forget_old(settings: Settings) -> Forgotten:
    """Delete what is older than the settings keep."""
    async with open_database(database_of(settings)) as database:
        store = RetentionStore(database, SystemClock())
        return await store.enforce(settings.service.retention)


async def keep_house(database: Database, clock: Clock, retention: Retention) -> None:
    """Forget what is old now and every few minutes, until cancelled."""
    responses, turns = ResponsesStore(database), TurnsStore(database, clock)
    old = RetentionStore(database, clock)
    replies, checkpoints = RepliesStore(database), CheckpointsStore(database)
    while True:
        now = clock.now()
        try:
            await responses.forget(now - retention.conversations)
            await turns.forget(now - _TURNS_FOR)
            await replies.forget(now)
            await checkpoints.sweep()
            await old.enforce(retention)
        except StoreError as error:
            _LOG.warning("What is old stays for now: %s", error)
        await clock.sleep(_EVERY)
