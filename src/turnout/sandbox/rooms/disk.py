"""Keeping what sandboxes write into the state folder from filling the disk of the host."""

import asyncio
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Final, TypeVar

from turnout.errors import SandboxError, UnfitError

__all__ = ["NO_SPACE", "full_disk", "is_full", "within_disk"]

NO_SPACE: Final = "No space left on device"
"""What a program says to whom a full disk was refused."""

_STEP = 0.5
_MOST_GROWTH: Final = 24 << 30
_MOST_NEW_FILES: Final = 4_000_000
_LEAST_FREE: Final = 256 << 20
_LEAST_FREE_FILES: Final = 16_384
_FEW_BYTES: Final = 4 << 20
_FEW_FILES: Final = 64

T = TypeVar("T")


def full_disk(folder: Path) -> UnfitError:
    """Return the error for a disk without space."""
    return UnfitError(
        "The disk of the state folder is full.",
        mend=f"Free some space in {folder}, then try again.",
    )


def is_full(folder: Path) -> bool:
    """Whether the disk of a folder has no space left to speak of, or no room for more files."""
    facts = os.statvfs(folder)
    no_files = facts.f_files > 0 and facts.f_favail < _FEW_FILES
    return no_files or _free_bytes(folder) < _FEW_BYTES


async def within_disk(folder: Path, work: Coroutine[object, object, T]) -> T:
    """Do work that fills the disk of a folder, and give it up when that gets out of hand.

    `UnfitError` where the disk is full, or the work seems to write without end.
    """
    free, files = _free_bytes(folder), _free_files(folder)
    least, least_files = min(_LEAST_FREE, free // 4), min(_LEAST_FREE_FILES, files // 4)
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait([task], timeout=_STEP))[0]:
            left, left_files = _free_bytes(folder), _free_files(folder)
            if left < least or left_files < least_files:
                raise full_disk(folder)
            if free - left > _MOST_GROWTH or files - left_files > _MOST_NEW_FILES:
                raise UnfitError(
                    f"Making the environment wrote more than {_MOST_GROWTH >> 30} GiB, "
                    f"or {_MOST_NEW_FILES:,} files.",
                    mend="Name the packages that the tests need with `requirements`.",
                )
        return task.result()
    except (SandboxError, UnfitError) as error:
        if is_full(folder):
            raise full_disk(folder) from error
        raise
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])


def _free_bytes(folder: Path) -> int:
    facts = os.statvfs(folder)
    return facts.f_bavail * facts.f_frsize


def _free_files(folder: Path) -> int:
    """Return how many more files there may be; 0 on a disk that does not count them."""
    return os.statvfs(folder).f_favail
