"""The environment of the tests: `/venv` with pip, pytest and what the repository declares.

It is made in a sandbox that reaches the package mirrors of the user's own pip, and nothing else.
Where that cannot be, the host fetches wheels and a sandbox without a network installs them.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from turnout.errors import UnfitError
from turnout.sandbox.base import VENV, Mount
from turnout.sandbox.declared.plain import applicable, pinned
from turnout.sandbox.mirrors.reach import Reach
from turnout.sandbox.rooms.disk import NO_SPACE, full_disk, is_full, within_disk
from turnout.sandbox.rooms.room import inside_program, opened_room
from turnout.sandbox.setup.pip import OUR_PIP, WHEELS, Pip, our_pip
from turnout.sandbox.setup.tools import Tools, offline_reach
from turnout.sandbox.setup.wheels import Download
from turnout.sandbox.workspace.folders import readable, remove_folder, short_hash
from turnout.sandbox.workspace.shelf import Facts, Shelf

__all__ = ["Environment", "prepare_environment"]

_INSTALL_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Environment:
    """A `/venv` that was made."""

    folder: Path
    """On the host; shown at `/venv`."""
    requirements: tuple[str, ...]
    """What it holds beside pytest."""
    warnings: tuple[str, ...]
    """What could not be had."""


class _Facts(Facts):
    requirements: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


async def prepare_environment(
    tools: Tools, requirements: Sequence[str], pins: Sequence[str] = ()
) -> Environment:
    """Make the environment, or find it made; it never changes again.

    `requirements` are plain specifiers, `pins` versions that are taken where they can be had. What
    cannot be had is left out and named in a warning; `UnfitError` where not even pytest can be had.
    """
    setup = _Setup(tools, requirements, pins)
    made = await Shelf(tools.state_dir, "environments", _Facts).get(setup.key, setup.make)
    warnings = [
        f"The requirement `{missing}` could not be installed; left out."
        for missing in made.facts.missing
    ]
    return Environment(made.folder / "venv", made.facts.requirements, tuple(warnings))


class _Setup:
    """Makes one environment."""

    def __init__(self, tools: Tools, requirements: Sequence[str], pins: Sequence[str]) -> None:
        markers = tools.interpreter.environment
        self._tools = tools
        self._wanted = applicable(requirements, markers)
        self._pins = pinned(pins, markers) if self._wanted else ()

    @property
    def key(self) -> str:
        """Another one for whatever may make another environment."""
        programs = [inside_program("venv.py"), inside_program("pytest_report.py")]
        facts = [self._tools.interpreter.key, sorted(self._wanted), self._pins, programs]
        return short_hash(json.dumps(facts))

    async def make(self, folder: Path) -> _Facts:
        """Install what is wanted, or as much of it as can be had, below an empty folder."""
        reach = await self._tools.mirrors.reach()
        kept: list[str] | None = None
        if not reach.obstacle:
            kept = await self._install(folder / "venv", reach, self._wanted)
        if kept is None:
            await remove_folder(folder / "venv")
            kept = await self._install_offline(folder)
        missing = tuple(text for text in self._wanted if text not in kept)
        return _Facts(lacking=bool(missing), requirements=tuple(kept), missing=missing)

    async def _install_offline(self, folder: Path) -> list[str]:
        """Let the host fetch wheels, and install these."""
        wheels = Download(readable(folder / "wheels"), self._tools.interpreter)
        found = await wheels.obtain(self._wanted, self._pins)
        kept = await self._install(folder / "venv", offline_reach(await wheels.opened()), found)
        await remove_folder(folder / "wheels")
        if kept is None:
            raise UnfitError(
                "pytest could not be installed from the wheels that pip fetched.",
                mend="Look at pip's own settings: pip config list.",
            )
        return kept

    async def _install(self, venv: Path, reach: Reach, wanted: Sequence[str]) -> list[str] | None:
        """Make the environment and return what it holds; None where not even pytest can be had."""
        work = self._install_inside(readable(venv), reach, wanted)
        return await within_disk(self._tools.state_dir, work)

    async def _install_inside(
        self, venv: Path, reach: Reach, wanted: Sequence[str]
    ) -> list[str] | None:
        pip_folders = our_pip()
        mounts = [Mount(str(venv), VENV, writable=True), *pip_folders, *reach.folders]
        async with opened_room(self._tools.starter, mounts, egress=reach.egress) as room:
            pip = Pip(room, VENV, seconds=_INSTALL_SECONDS)
            await pip.begin(OUR_PIP if pip_folders else WHEELS, reach.files)
            kept = await pip.obtain(wanted, self._pins)
            if kept is None and NO_SPACE in pip.said and is_full(self._tools.state_dir):
                raise full_disk(self._tools.state_dir)
            if kept is not None:
                await pip.finish()
        return kept
