"""Locks between the processes that share a state folder."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from turnout.errors import UnfitError
from turnout.sandbox.workspace.folders import private

__all__ = ["locked"]

_STEP = 0.05


@asynccontextmanager
async def locked(path: Path, *, timeout: float) -> AsyncIterator[None]:
    """Hold a lock file, alone among all processes and tasks; the file and its folder stay.

    `UnfitError` where another holds it for `timeout` seconds.
    """
    private(path.parent)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        await _take(descriptor, path, timeout)
        yield
    finally:
        os.close(descriptor)


async def _take(descriptor: int, path: Path, timeout: float) -> None:
    deadline = asyncio.get_running_loop().time() + timeout
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if asyncio.get_running_loop().time() > deadline:
                raise UnfitError(
                    f"Another run has held {path.name} for {timeout:.0f} seconds.",
                    mend="Wait for it to end, or end it.",
                ) from None
            await asyncio.sleep(_STEP)
        else:
            return
