"""Wheels that the host fetches, where a sandbox cannot fetch them itself.

No code of a package is run on the host, and none is built from source.
"""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from turnout.errors import UnfitError
from turnout.sandbox.rooms.disk import NO_SPACE, full_disk
from turnout.sandbox.setup.interpreter import Interpreter
from turnout.sandbox.setup.pip import without_unknown
from turnout.sandbox.workspace.fitting import most_that_fit
from turnout.sandbox.workspace.process import run_program

__all__ = ["Download"]

_SECONDS = 600.0
_CHMOD_SECONDS = 60.0
_PIP = """
import os, runpy, sys
STARTS = ("subprocess.Popen", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.system")
def refuse(event, arguments):
    if event in STARTS and os.path.basename(str(arguments[:1] and arguments[0])) != "keyring":
        raise PermissionError("pip on the host starts no program")
sys.addaudithook(refuse)
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""
"""A wheel may ask for something by its URL, and `--only-binary` lets pip build that: it cannot."""


class Download:
    """Wheels of one environment, fetched by pip with the user's own configuration."""

    def __init__(self, wheels: Path, interpreter: Interpreter) -> None:
        self._wheels = wheels
        self._options = interpreter.pip_options
        self._deadline = asyncio.get_running_loop().time() + _SECONDS
        self._said = ""

    async def opened(self) -> Path:
        """Return the folder, for others to read."""
        await run_program(["chmod", "-R", "a+rX,go-w", str(self._wheels)], timeout=_CHMOD_SECONDS)
        return self._wheels

    async def obtain(self, wanted: Sequence[str], pins: Sequence[str]) -> list[str]:
        """Fetch pytest and as much of `wanted` as can be had together; return what that is.

        With the versions of `pins` where that is possible. `UnfitError` where not even pytest can
        be had, or a disk is full.
        """
        everything = ["pip", "pytest", *wanted]
        if pins and await self.fetch(everything, constraints=pins):
            return list(wanted)
        if await self.fetch(everything):
            return list(wanted)
        known = without_unknown(wanted, self._said)
        if not await self.fetch(["pip", "pytest"]):
            raise self._hopeless()
        return await most_that_fit(known, self._fits)

    async def _fits(self, requirements: Sequence[str]) -> bool:
        return await self.fetch(["pip", "pytest", *requirements])

    async def fetch(self, requirements: Sequence[str], *, constraints: Sequence[str] = ()) -> bool:
        """Fetch wheels of all requirements; whether all of them can be had."""
        left = self._deadline - asyncio.get_running_loop().time()
        if left <= 0:
            return False
        argv = [sys.executable, "-c", _PIP, "download", "--only-binary", ":all:", "--no-input"]
        argv += ["--disable-pip-version-check", "--progress-bar", "off", "--quiet"]
        argv += ["--dest", str(self._wheels), *self._options]
        if constraints:
            pins = self._wheels / "constraints.txt"
            pins.write_text("\n".join(constraints), "utf-8")
            argv += ["--constraint", str(pins)]
        argv += ["--", *requirements]
        done = await run_program(argv, timeout=left)
        self._said = done.stderr if done.code is not None else "pip did not end in time"
        if not done.ok and NO_SPACE in self._said:
            raise full_disk(self._wheels.parent)
        return done.ok

    def _hopeless(self) -> UnfitError:
        if "No module named pip" in self._said:
            return UnfitError(
                "Turnout's own Python has no pip, which fetches the packages of the tests.",
                mend=f"Install it: {sys.executable} -m ensurepip.",
            )
        lines = [line for line in self._said.splitlines() if line.startswith("ERROR")]
        said = (lines or self._said.splitlines() or ["pip said nothing"])[-1]
        return UnfitError(
            f"pytest cannot be fetched: {said[:300]}",
            mend=f"Check pip's index and the network: {sys.executable} -m pip download pytest.",
        )
