"""Keeping what was made in a workspace, for later workspaces to lie over; the host reads none."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from turnout.sandbox.bare import BareStarter
from turnout.sandbox.base import Command, Mount, Sandbox
from turnout.sandbox.rooms.piping import Piped
from turnout.sandbox.rooms.room import SCRATCH, opened_room

__all__ = ["Keeping", "Listed"]

_SECONDS = 600.0
_MADE = f"{SCRATCH}/made"
_PACK: Final = ("/bin/tar", "--create", "--file=-", "--no-recursion")
_LISTED: Final = ("--null", "--verbatim-files-from")
_UNPACK: Final = 'tar --extract --file=- --no-same-owner --directory="$1" && cat >/dev/null'
"""Reads to the end what comes, of which tar leaves the padding."""

_IGNORE: Final = 'mkdir -p "$1/.git/info" && cat >"$1/.git/info/exclude"'


@dataclass(frozen=True, slots=True)
class Listed:
    """Paths of a workspace, each ended or parted by a NUL byte."""

    file: str
    """A file of the sandbox that holds them, or `-`."""
    text: bytes | None = None
    """They themselves, for `-`."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """Moves files from the workspace of a sandbox to a folder of the host."""

    starter: BareStarter
    most_bytes: int
    what: str
    """Begins the sentence that says what went wrong."""

    async def keep(self, sandbox: Sandbox, listed: Listed, rules: str, folder: Path) -> bool:
        """Fill an empty folder, with rules by which git ignores what is in it; whether it is whole.

        `SandboxError` where the files could not be read.
        """
        pack = Piped(sandbox, self.most_bytes)
        argv = (*_PACK, *_LISTED, "--files-from", listed.file)
        packing = Command(argv, stdin=listed.text, timeout=_SECONDS, raw=True)
        mounts = [Mount(str(folder), _MADE, writable=True)]
        async with opened_room(self.starter, mounts) as room:
            unpacked = await room.sandbox.run(_into(_UNPACK, pack.output(packing)))
            ignored = await room.sandbox.run(_into(_IGNORE, rules.encode()))
        pack.check(f"{self.what} could not be read")
        return unpacked.ok and ignored.ok


def _into(script: str, given: bytes | AsyncIterator[bytes]) -> Command:
    """Return the command that takes what is given into the folder."""
    return Command(("/bin/sh", "-c", script, "sh", _MADE), cwd="/", stdin=given, timeout=_SECONDS)
