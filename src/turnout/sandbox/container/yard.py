"""What all containers of a driver have in common."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from turnout.sandbox.container.engines.survey import Survey
from turnout.sandbox.container.layout import OwnFolder
from turnout.sandbox.walls.launcher import Launcher
from turnout.sandbox.walls.registry import Entry, Registry

__all__ = ["Yard"]

_PAUSES = (0.2, 1.0)
"""Before it is tried again to remove what an engine is still busy with."""


@dataclass(frozen=True, slots=True)
class Yard:
    """What all containers of a driver are started with."""

    survey: Survey
    launcher: Launcher
    registry: Registry
    folder: Path
    """Holds a folder for each container, and one that every stage hides."""
    label: str
    """`NAME=VALUE`, which all containers of the state folder bear."""

    def own_folder(self, name: str) -> OwnFolder:
        """Return the folder of a container."""
        return OwnFolder(self.folder / name)

    async def remove(self, entry: Entry) -> None:
        """Remove a container and what it had on the host; what cannot be is left to `reap`."""
        removed = await self._remove(entry.name)
        for pause in _PAUSES:
            if not removed:
                await asyncio.sleep(pause)
                removed = await self._remove(entry.name)
        if removed:
            await asyncio.to_thread(self.own_folder(entry.name).remove)
        entry.settle(removed=removed)

    async def remove_strays(self) -> None:
        """Remove containers of this state folder that are not in its registry."""
        # In this order: whatever is started meanwhile is registered first.
        running = await self.survey.engine.names(self.label)
        for name in running - await asyncio.to_thread(self.registry.names):
            await self._remove(name)

    async def _remove(self, name: str) -> bool:
        return await self.survey.engine.remove(name, volume=bool(self.survey.unstaged))
