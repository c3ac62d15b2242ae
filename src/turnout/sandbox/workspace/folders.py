"""Folders of the service's state that hold what sandboxes are made of."""

import hashlib
import os
from pathlib import Path

from turnout.sandbox.walls.identity import choose_identity
from turnout.sandbox.workspace.process import run_program

__all__ = ["private", "readable", "remove_folder", "short_hash", "traversable"]

_REMOVE_TIMEOUT = 300.0


def short_hash(text: str) -> str:
    """Return 32 hexadecimal digits that name a text."""
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:32]


def private(folder: Path) -> Path:
    """Make a folder that the service alone may enter, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    return folder


def traversable(folder: Path) -> Path:
    """Make a folder whose entries sandboxes reach by name but cannot list, and return it.

    No other uid of the machine may enter it.
    """
    private(folder)
    identity = choose_identity()
    if identity is not None:
        os.chown(folder, -1, identity.gid)
        folder.chmod(0o710)
    return folder


def readable(folder: Path) -> Path:
    """Make a folder that sandboxes may list, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    return folder


async def remove_folder(folder: Path) -> None:
    """Remove a folder of ours, however deep it is and whatever links it holds."""
    argv = ["rm", "-rf", "--one-file-system", "--", str(folder)]
    await run_program(argv, timeout=_REMOVE_TIMEOUT)
