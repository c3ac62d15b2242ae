"""Containers for a bench: those of our driver, and Podman's own commands beside them."""

import asyncio
import shutil
import subprocess
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from turnout.sandbox.container.driver import ContainerDriver
from turnout.sandbox.container.options import ContainerOptions

__all__ = ["Engine", "Podman", "find_podman"]

_IMAGES = ("localhost/turnout-sandbox", "localhost/turnout-test")
_ULIMITS = ("nofile=1024:1024", "nproc=2000:2000")
"""What the engine would set by itself, not every machine allows."""


@dataclass(frozen=True, slots=True)
class Engine:
    """Podman with an image that sandboxes can be made of."""

    program: str
    image: str
    cold: ContainerDriver
    warm: ContainerDriver
    """Keeps one container ready."""


async def find_podman(state: Path, stack: AsyncExitStack) -> Engine | None:
    """Return Podman with an image that is there already; None where either is missing."""
    program = shutil.which("podman")
    if program is None:
        return None
    listed = await asyncio.to_thread(
        _output, program, "images", "--format", "{{.Repository}}:{{.Tag}}"
    )
    image = next((line for line in listed.split() if line.partition(":")[0] in _IMAGES), None)
    if image is None:
        return None
    cold, warm = (
        ContainerDriver(state, options=ContainerOptions(engine="podman", image=image, warm=count))
        for count in (0, 1)
    )
    for driver in (cold, warm):
        stack.push_async_callback(driver.close)
    usable = (await cold.probe()).usable
    return Engine(program, image, cold, warm) if usable else None


class Podman:
    """The engine's own commands, as somebody would use them without us."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._name = f"turnout-bench-{token_hex(4)}"

    async def begin(self) -> None:
        """Start a container for `exec`."""
        await self._call("run", "--detach", "--name", self._name, *self._options, "sleep", "600")

    async def run(self) -> None:
        """Run a command in a container of its own."""
        await self._call("run", "--rm", *self._options, "/bin/true")

    async def exec(self) -> None:
        """Run a command in the container that is there."""
        await self._call("exec", self._name, "/bin/true")

    async def close(self) -> None:
        """Remove the container."""
        await self._call("rm", "--force", "--time", "0", self._name)

    @property
    def _options(self) -> tuple[str, ...]:
        ulimits = (f"--ulimit={each}" for each in _ULIMITS)
        return ("--network=none", *ulimits, self._engine.image)

    async def _call(self, *words: str) -> None:
        await asyncio.to_thread(_output, self._engine.program, *words)


def _output(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout
