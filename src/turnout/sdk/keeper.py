"""The sandboxes of this process."""

import asyncio
import os
import warnings
import weakref
from typing import Final

from turnout.sdk.background import Background
from turnout.sdk.box import Box
from turnout.sdk.opening import Drivers
from turnout.sdk.options import Creation

__all__ = ["Hold", "Keeper", "keeper"]


class Hold:
    """What the objects of one caller have of a sandbox; when the last is dropped, it is closed."""

    def __init__(self, background: Background, box: Box) -> None:
        self.background = background
        self.box = box
        weakref.finalize(self, _dropped, background, box).atexit = False


class Keeper:
    """Makes sandboxes, and closes at the end of the program those that nobody has closed."""

    def __init__(self) -> None:
        self.background = Background(self._close_all)
        self._drivers = Drivers()
        self._boxes: weakref.WeakSet[Box] = weakref.WeakSet()

    async def create(self, wanted: Creation) -> Hold:
        """Make a sandbox; done on the loop of `background`."""
        opened = await self._drivers.open(wanted)
        return self._held(Box.of(opened, wanted))

    async def fork(self, box: Box) -> Hold:
        """Make a sandbox with the files of another; done on the loop of `background`."""
        return self._held(await box.fork())

    def _held(self, box: Box) -> Hold:
        self._boxes.add(box)
        return Hold(self.background, box)

    async def _close_all(self) -> None:
        ends = (box.close("the program ended") for box in tuple(self._boxes))
        await asyncio.gather(*ends, return_exceptions=True)
        await self._drivers.close()


def _dropped(background: Background, box: Box) -> None:
    """Close a sandbox that nobody can reach any more; called in any thread, at any moment."""
    if not box.is_open or not background.is_here:
        return
    background.submit(box.close())
    warnings.warn(
        f"{box.id} was not closed: create it in a `with` block, or call `kill`.",
        ResourceWarning,
        stacklevel=2,
    )


_BY_PROCESS: Final[dict[int, Keeper]] = {}
"""No thread survives a fork, and a child needs its own; what it has of its parent is left alone,
since closing that would disturb the parent, which shares the descriptors."""


def keeper() -> Keeper:
    """Return the one of this process."""
    pid = os.getpid()
    return _BY_PROCESS.get(pid) or _BY_PROCESS.setdefault(pid, Keeper())
