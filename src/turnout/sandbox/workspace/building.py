"""Folders that are not finished yet, and what becomes of them when their maker dies."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from turnout.sandbox.workspace.folders import remove_folder, traversable
from turnout.sandbox.workspace.process import run_program

__all__ = ["building", "discard", "remove_abandoned", "tidy"]

_BUILT = ("trees", "environments", "projects", "nodes", "setups", "kept", "checkouts")
_CHMOD_TIMEOUT = 300.0


@asynccontextmanager
async def building(parent: Path, name: str) -> AsyncIterator[Path]:
    """Yield a hidden folder in `parent`, to be renamed once it is whole; else it is removed.

    It is locked as long as this process lives, which tells it from one whose maker has died.
    """
    with _locked(parent):
        folder = traversable(parent / f".{name}-{token_hex(6)}")
        descriptor = _open(folder)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield folder
    finally:
        os.close(descriptor)
        await discard(folder)


async def discard(folder: Path) -> None:
    """Remove a folder that a sandbox has filled, whatever its modes; nothing where it is gone."""
    doomed = _set_aside(folder)
    if doomed is None:
        return
    if os.geteuid() != 0:
        argv = ["chmod", "-R", "--", "u+rwX", str(doomed)]
        await run_program(argv, timeout=_CHMOD_TIMEOUT)
    await remove_folder(doomed)


def _set_aside(folder: Path) -> Path | None:
    """Give a folder a name that nobody looks for; None where it is gone."""
    doomed = folder.with_name(f".gone-{token_hex(6)}")
    try:
        folder.rename(doomed)
    except FileNotFoundError:
        return None
    return doomed


async def remove_abandoned(parent: Path) -> None:
    """Remove the unfinished folders in `parent` whose makers have died."""
    for folder in await asyncio.to_thread(lambda: list(_abandoned(parent))):
        await discard(folder)


async def tidy(state_dir: Path) -> None:
    """Remove the unfinished folders of dead services from everything that is built in a state."""
    for kind in _BUILT:
        await remove_abandoned(state_dir / kind)


def _abandoned(parent: Path) -> Iterator[Path]:
    if not parent.is_dir():
        return
    with _locked(parent):
        for folder in parent.glob(".*"):
            with suppress(FileNotFoundError, NotADirectoryError, BlockingIOError):
                descriptor = _open(folder)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                finally:
                    os.close(descriptor)
                yield folder


def _open(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, for the moment that it takes to make or find others in it."""
    descriptor = _open(folder)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
