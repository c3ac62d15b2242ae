"""The sandboxes in which environments are made."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.resources import files
from secrets import token_hex

from turnout.core.ids import RunId
from turnout.sandbox.bare import BareStarter, WorkspaceKind
from turnout.sandbox.base import (
    BASE_ENV,
    NO_EGRESS,
    Command,
    CommandResult,
    Egress,
    Limits,
    Mount,
    Sandbox,
)

__all__ = ["SCRATCH", "SCRATCH_TEXT", "Room", "inside_program", "last_words", "opened_room"]

SCRATCH = f"{BASE_ENV['TMPDIR']}/setup"
"""Folder inside for what only the setting up needs."""

SCRATCH_TEXT = "${TURNOUT_SCRATCH}"
"""The same in texts for that folder, which know it by no other name."""

_LIMITS = Limits(memory_bytes=4 << 30, disk_bytes=6 << 30, file_bytes=4 << 30, inodes=1_000_000)


def inside_program(name: str) -> str:
    """Return the source of a program that is meant for the inside."""
    return files("turnout.sandbox.inside").joinpath(name).read_text("utf-8")


def last_words(result: CommandResult, most: int = 300) -> str:
    """Return why a command failed, as far as it said so."""
    lines = result.stderr.decode(errors="backslashreplace").strip().splitlines()
    said = "".join(one if one.isprintable() else " " for one in lines[-1]) if lines else ""
    return said[-most:] or result.exit.error or result.exit.reason


class Room:
    """A set-up sandbox, with the programs that run there."""

    def __init__(self, sandbox: Sandbox, python: str) -> None:
        self.sandbox = sandbox
        self._python = python

    async def run(
        self, name: str, *arguments: str, stdin: bytes = b"", timeout: float = 120.0
    ) -> CommandResult:
        """Run one of our programs by the sandbox's own interpreter; keeps 16 MiB of output."""
        argv = (self._python, "-ISE", "-c", inside_program(name), *arguments)
        return await self.sandbox.run(
            Command(argv=argv, cwd="/", stdin=stdin, timeout=timeout, head=16 << 20)
        )


@asynccontextmanager
async def opened_room(
    starter: BareStarter,
    mounts: Sequence[Mount],
    *,
    workspace: WorkspaceKind = "empty",
    egress: Egress = NO_EGRESS,
) -> AsyncIterator[Room]:
    """Start a set-up sandbox and end it."""
    run_id = RunId(f"setup-{token_hex(6)}")
    sandbox = await starter.start_bare(run_id, mounts, _LIMITS, workspace=workspace, egress=egress)
    try:
        yield Room(sandbox, starter.python)
    finally:
        await sandbox.close()
