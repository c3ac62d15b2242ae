"""Where the workspaces of the service's runs are kept."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from turnout.core.clock import Clock, SystemClock
from turnout.errors import StoreError
from turnout.runs.checkpoints.folder import FolderVault
from turnout.runs.checkpoints.ports import Checkpoints, LocalCheckpoints
from turnout.runs.checkpoints.shared import SharedCheckpoints
from turnout.sandbox.base import SandboxDriver
from turnout.sandbox.bubblewrap import BubblewrapDriver
from turnout.sandbox.carrying.port import LayerShelf
from turnout.sandbox.carrying.stacked import StackedShelf
from turnout.sandbox.carrying.whole import WholeShelf
from turnout.sandbox.container.driver import ContainerDriver
from turnout.settings import Settings
from turnout.store.checkpoints import CheckpointsStore
from turnout.store.database import open_database
from turnout.store.record import RecordStore
from turnout.wiring.state import database_of

__all__ = ["keep_swept", "open_checkpoints"]

_EVERY: Final = 3_600.0
"""Seconds between two looks for what nobody needs any more."""
_LOG: Final = logging.getLogger(__name__)


@asynccontextmanager
async def open_checkpoints(settings: Settings, driver: SandboxDriver) -> AsyncIterator[Checkpoints]:
    """Open what keeps checkpoints: for every machine as far as the settings say so, else here."""
    options, shelf = settings.service.checkpoints, _shelf(settings, driver)
    if shelf is None or not settings.shares_checkpoints:
        yield LocalCheckpoints()
    elif options.folder is not None:
        vault = FolderVault(options.folder)
        async with open_database(database_of(settings)) as aside:
            sweeping = asyncio.create_task(keep_swept(vault, RecordStore(aside), SystemClock()))
            try:
                yield SharedCheckpoints(shelf, vault, options.most_bytes)
            finally:
                sweeping.cancel()
                await asyncio.wait({sweeping})
    else:
        # Its writes are long ones: no record waits behind them.
        async with open_database(database_of(settings)) as aside:
            yield SharedCheckpoints(shelf, CheckpointsStore(aside), options.most_bytes)


async def keep_swept(vault: FolderVault, records: RecordStore, clock: Clock) -> None:
    """Drop what runs left that have ended and could not drop it, now and every hour.

    A database sweeps itself.
    """
    while True:
        try:
            await vault.sweep(records.ended)
        except StoreError as error:
            _LOG.warning("Checkpoints of runs that have ended stay for now: %s", error)
        await clock.sleep(_EVERY)


def _shelf(settings: Settings, driver: SandboxDriver) -> LayerShelf | None:
    """Return what hands the layers of a driver on; None where it keeps none."""
    if isinstance(driver, BubblewrapDriver | ContainerDriver):
        return StackedShelf(driver)
    if settings.driver == "kubernetes":
        return WholeShelf(settings.home / "kubernetes")
    return None
