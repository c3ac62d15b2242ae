"""What everything that is made for one base layer is made with."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from turnout.sandbox.bare import BareStarter
from turnout.sandbox.base import NO_EGRESS, Mount
from turnout.sandbox.mirrors.pip_settings import PipSettings, ask_pip
from turnout.sandbox.mirrors.reach import Reach, discovered, find_reach
from turnout.sandbox.rooms.room import SCRATCH_TEXT
from turnout.sandbox.setup.interpreter import Interpreter, ask_interpreter
from turnout.sandbox.setup.pip import WHEELS

__all__ = ["Mirrors", "Tools", "offline_reach", "open_tools"]

_OFFLINE: Final = f"[global]\nno-index = true\nfind-links = {SCRATCH_TEXT}/wheels\n"


class Mirrors:
    """Where packages come from, looked up when it is first asked for.

    Without `settings` it is what the user's own pip is told.
    """

    def __init__(self, starter: BareStarter, settings: PipSettings | None = None) -> None:
        self._starter = starter
        self._settings = settings
        self._asking = asyncio.Lock()
        self._reach: Reach | None = None

    async def reach(self) -> Reach:
        """Return how a sandbox gets packages, or what keeps it from that."""
        async with self._asking:
            if self._reach is None:
                settings = await ask_pip() if self._settings is None else self._settings
                self._reach = await discovered(self._starter, find_reach(settings), settings)
            return self._reach


@dataclass(frozen=True, slots=True)
class Tools:
    """What everything that is made for one base layer is made with."""

    starter: BareStarter
    interpreter: Interpreter
    mirrors: Mirrors

    @property
    def state_dir(self) -> Path:
        """Folder of the service's state."""
        return self.starter.state_dir


async def open_tools(starter: BareStarter) -> Tools:
    """Look at what there is."""
    return Tools(starter, await ask_interpreter(starter), Mirrors(starter))


def offline_reach(wheels: Path) -> Reach:
    """Return the way to wheels in a folder of the host, and to nothing else."""
    return Reach(NO_EGRESS, (Mount(str(wheels), WHEELS),), _OFFLINE)
