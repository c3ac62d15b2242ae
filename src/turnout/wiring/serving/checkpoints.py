"""Where the workspaces of the service's runs are kept."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

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
from turnout.wiring.state import database_of

__all__ = ["open_checkpoints"]


@asynccontextmanager
async def open_checkpoints(settings: Settings, driver: SandboxDriver) -> AsyncIterator[Checkpoints]:
    """Open what keeps checkpoints: for every machine as far as the settings say so, else here."""
    options, shelf = settings.service.checkpoints, _shelf(settings, driver)
    if shelf is None or not settings.shares_checkpoints:
        yield LocalCheckpoints()
    elif options.folder is not None:
        yield SharedCheckpoints(shelf, FolderVault(options.folder), options.most_bytes)
    else:
        # Its writes are long ones: no record waits behind them.
        async with open_database(database_of(settings)) as aside:
            yield SharedCheckpoints(shelf, CheckpointsStore(aside), options.most_bytes)


def _shelf(settings: Settings, driver: SandboxDriver) -> LayerShelf | None:
    """Return what hands the layers of a driver on; None where it keeps none."""
    if isinstance(driver, BubblewrapDriver | ContainerDriver):
        return StackedShelf(driver)
    if settings.driver == "kubernetes":
        return WholeShelf(settings.home / "kubernetes")
    return None
