"""Helpers for tests that start real containers."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.images.debian import require_image
from turnout.core.ids import RunId
from turnout.sandbox.base import Command, Limits, Sandbox
from turnout.sandbox.container.driver import ContainerDriver
from turnout.sandbox.container.options import ContainerOptions
from turnout.sandbox.egress.gate import EgressServices

__all__ = ["MIB", "RUN", "SMALL", "left_of", "names_of", "opened", "podman", "said"]

RUN = RunId("run-0000000c0de0")
MIB = 1 << 20
SMALL = Limits(
    memory_bytes=160 * MIB,
    pids=64,
    disk_bytes=48 * MIB,
    inodes=5_000,
    file_bytes=32 * MIB,
    open_files=64,
)


@asynccontextmanager
async def opened(
    state: Path,
    *,
    warm: int = 0,
    piped: bool = False,
    egress: EgressServices | None = None,
) -> AsyncIterator[ContainerDriver]:
    """Open a driver on Podman and runc; skips with the reason where it cannot be used."""
    image = await asyncio.to_thread(require_image)
    options = ContainerOptions(engine="podman", runtime="runc", image=image, warm=warm, piped=piped)
    async with ContainerDriver(state, options=options, egress=egress or EgressServices()) as driver:
        found = await driver.probe()
        if not found.usable:
            pytest.skip(found.facts[0][2])
        yield driver


async def said(sandbox: Sandbox, shell: str) -> str:
    """Return what a command printed on both streams."""
    result = await sandbox.run(Command(shell=f"exec 2>&1; {shell}", timeout=30))
    return result.stdout.decode(errors="replace").strip()


def names_of(state: Path) -> set[str]:
    """Return the names of the containers that a state folder knows."""
    return {path.stem for path in (state / "containers" / "running").glob("*.json")}


def podman(*words: str) -> str:
    """Return what a command of Podman prints."""
    done = subprocess.run(["podman", *words], check=True, capture_output=True, timeout=60)
    return done.stdout.decode()


def left_of(names: set[str], state: Path) -> set[str]:
    """Return traces of containers: themselves, their volumes, mounts, folders and entries."""
    everything = {
        each
        for found in json.loads(podman("ps", "-a", "--format=json") or "[]")
        for each in found["Names"]
    }
    everything |= set(podman("volume", "ls", "--quiet").split())
    everything |= {path.name for path in (state / "containers" / "own").iterdir()} - {"stage"}
    mounts = Path("/proc/self/mounts").read_text()
    return (
        (names & everything)
        | names_of(state)
        | {line for line in mounts.splitlines() if str(state) in line}
    )
