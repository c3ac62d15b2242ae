"""Helpers for tests that start real sandboxes."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from turnout.core.ids import RunId
from turnout.errors import SandboxUnavailableError
from turnout.sandbox.base import Command, Limits, Mount
from turnout.sandbox.bubblewrap import BubblewrapDriver, BubblewrapSandbox

RUN = RunId("run-00000000ab5e")
MIB = 1 << 20
SMALL = Limits(
    memory_bytes=160 * MIB,
    pids=64,
    cpus=2,
    disk_bytes=48 * MIB,
    inodes=5_000,
    file_bytes=32 * MIB,
    open_files=64,
)


@asynccontextmanager
async def started(
    driver: BubblewrapDriver, *mounts: Mount, limits: Limits = SMALL
) -> AsyncIterator[BubblewrapSandbox]:
    """Start a sandbox and end it."""
    try:
        sandbox = await driver.start_bare(RUN, mounts, limits)
    except SandboxUnavailableError as error:
        pytest.skip(str(error))
    try:
        yield sandbox
    finally:
        await sandbox.close()


async def said(sandbox: BubblewrapSandbox, shell: str, timeout: float = 20) -> str:
    """Return what a command printed on both streams."""
    result = await sandbox.run(Command(shell=f"exec 2>&1; {shell}", timeout=timeout))
    return result.stdout.decode(errors="replace")


async def python(sandbox: BubblewrapSandbox, code: str) -> str:
    """Return what a Python program inside printed."""
    command = Command((sandbox.python, "-ISE", "-c", code), timeout=20)
    result = await sandbox.run(command)
    return (result.stdout + result.stderr).decode(errors="replace").strip()


async def alive(sandbox: BubblewrapSandbox) -> bool:
    """Whether the sandbox still runs commands."""
    return await said(sandbox, "echo alive") == "alive\n"


def cgroups() -> set[str]:
    """Return the control groups of sandboxes on this machine."""
    # Groups of other tests go while they are looked for, which `os.walk` passes over.
    return {
        str(Path(folder, name))
        for folder, names, _ in os.walk("/sys/fs/cgroup")
        for name in names
        if name.startswith("turnout-")
    }


def processes() -> dict[Path, str]:
    """Return the command line of every process of the host that can be read."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found[path.parent] = path.read_text(errors="replace")
        except OSError:
            continue
    return found


def all_commands() -> str:
    """Return the command lines of all processes of the host."""
    return "\n".join(processes().values())


def owners_of(command: str) -> set[int]:
    """Return the uids on the host of the processes with this command line."""
    return {path.stat().st_uid for path, line in processes().items() if line == command}
