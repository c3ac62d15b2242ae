"""Installing into an environment, by pip inside a set-up sandbox."""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.utils import canonicalize_name

from turnout.errors import UnfitError
from turnout.sandbox.base import PROJECT, Command, Mount
from turnout.sandbox.declared.plain import package_name
from turnout.sandbox.rooms.room import SCRATCH, Room, inside_program, last_words
from turnout.sandbox.workspace.fitting import most_that_fit

__all__ = ["OUR_PIP", "WHEELS", "Pip", "our_pip", "without_unknown"]

OUR_PIP = f"{SCRATCH}/pip"
"""Where the pip that belongs to our own Python is shown inside."""

WHEELS = f"{SCRATCH}/wheels"
"""Where wheels are shown inside that the host has fetched."""

_BEGIN_TIMEOUT = 180.0
_PINNED, _TOGETHER, _SOUGHT = 0.3, 0.6, 0.8
"""Parts of the time after which exact versions, all together, and the search are given up."""
_FINISH_TIMEOUT = 60.0
_NOT_FOUND = re.compile(r"No matching distribution found for ([A-Za-z0-9][\w.-]*)")
_ENVIRONMENT = {
    "PYTHONPATH": "",
    "PIP_CONFIG_FILE": f"{SCRATCH}/pip.conf",
    "PIP_CACHE_DIR": f"{SCRATCH}/cache",
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_WARN_SCRIPT_LOCATION": "1",
    "PIP_PROGRESS_BAR": "off",
    "PIP_QUIET": "1",
}


def our_pip() -> tuple[Mount, ...]:
    """Show pip as it is installed beside us; nothing where it is not, or others cannot read it."""
    try:
        found = distribution("pip")
    except PackageNotFoundError:
        return ()
    names = ("pip", f"pip-{found.version}.dist-info")
    folders = [(name, Path(str(found.locate_file(name)))) for name in names]
    if not all(folder.is_dir() and folder.stat().st_mode & 0o005 == 0o005 for _, folder in folders):
        return ()
    return tuple(Mount(str(folder), f"{OUR_PIP}/{name}") for name, folder in folders)


def without_unknown(wanted: Sequence[str], said: str) -> list[str]:
    """Return the requirements but for those that pip said it found nowhere."""
    unknown = {canonicalize_name(name) for name in _NOT_FOUND.findall(said)}
    return [text for text in wanted if package_name(text) not in unknown]


class Pip:
    """Makes one environment in one set-up sandbox."""

    def __init__(self, room: Room, venv: str, *, seconds: float) -> None:
        self._room = room
        self._venv = venv
        self._seconds = seconds
        self._began = asyncio.get_running_loop().time()
        self.said = ""
        """What pip complained of when it failed last."""

    async def begin(self, source: str, files: Mapping[str, str]) -> None:
        """Make the environment with pip in it, from `source` or by Python's own means.

        `files` are texts for the scratch folder. `UnfitError` where it cannot be made.
        """
        arguments = ("begin", self._venv, source, SCRATCH)
        given = json.dumps(dict(files)).encode()
        result = await self._room.run("venv.py", *arguments, stdin=given, timeout=_BEGIN_TIMEOUT)
        if not result.ok:
            raise UnfitError(
                f"The environment of the tests could not be made: {last_words(result)}.",
                mend="Check that Python's venv module is installed: apt install python3-venv.",
            )

    async def install(
        self, *arguments: str, constraints: Sequence[str] = (), until: float = 1.0
    ) -> bool:
        """Install what the arguments say; whether that went well.

        It is given up once the part `until` of all the time is over.
        """
        left = self._began + until * self._seconds - asyncio.get_running_loop().time()
        if left <= 0:
            self.said = "pip did not end in time"
            return False
        argv = [f"{self._venv}/bin/python", "-I", "-m", "pip", "install"]
        if constraints:
            argv += ["--constraint", "/dev/stdin"]
        result = await self._room.sandbox.run(
            Command(
                argv=(*argv, *arguments),
                cwd="/",
                env=_ENVIRONMENT,
                stdin="\n".join(constraints).encode(),
                timeout=left,
            )
        )
        said = result.stderr.decode(errors="backslashreplace")
        self.said = said if result.exit.reason == "exited" else "pip did not end in time"
        return result.ok

    async def obtain(self, wanted: Sequence[str], pins: Sequence[str]) -> list[str] | None:
        """Install pytest and as much of `wanted` as can be had together; return what that is.

        With the versions of `pins` where that is possible. None where not even pytest can be had.
        """
        everything = ("--", "pytest", *wanted)
        if pins and await self.install(*everything, constraints=pins, until=_PINNED):
            return list(wanted)
        if await self.install(*everything, until=_TOGETHER):
            return list(wanted)
        known = without_unknown(wanted, self.said)
        if not wanted or not await self.install("--", "pytest"):
            return None
        kept = await most_that_fit(known, self._fits)
        return kept if not kept or await self.install("--", "pytest", *kept) else []

    async def _fits(self, requirements: Sequence[str]) -> bool:
        return await self.install("--dry-run", "--", "pytest", *requirements, until=_SOUGHT)

    async def finish(self) -> None:
        """Add what is ours to the environment; nothing is installed after that."""
        plugin = inside_program("pytest_report.py").encode()
        result = await self._room.run(
            "venv.py", "finish", self._venv, PROJECT, stdin=plugin, timeout=_FINISH_TIMEOUT
        )
        if not result.ok:
            raise UnfitError(
                f"The environment of the tests could not be finished: {last_words(result)}."
            )
