"""Diffs as they were read: those that were looked at last, read once and one at a time.

A diff has up to hundreds of thousands of lines, and every file of it is asked for by itself.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from turnout.errors import GatewayError
from turnout.web.console.runs.diff.reading import DiffFile, read_diff

__all__ = ["Diffs"]

_MOST_LINES: Final = 200_000
"""Lines of all that are kept, unless one alone has more."""
_MOST_WAITING: Final = 40

Made = TypeVar("Made")


class Diffs:
    """Works on diffs beside the loop, for one visitor at a time."""

    def __init__(
        self,
        read: Callable[[bytes], Sequence[DiffFile]] = read_diff,
        *,
        most_lines: int = _MOST_LINES,
        most_waiting: int = _MOST_WAITING,
    ) -> None:
        self._read = read
        self._most_lines = most_lines
        self._most_waiting = most_waiting
        self._waiting = 0
        self._working = asyncio.Lock()
        self._kept: OrderedDict[bytes, tuple[Sequence[DiffFile], int]] = OrderedDict()

    async def work(self, diff: bytes, make: Callable[[Sequence[DiffFile]], Made]) -> Made:
        """Return what `make` makes of the files of a diff.

        `GatewayError` (503) where too many wait for theirs.
        """
        if self._waiting >= self._most_waiting:
            raise GatewayError(
                "Too many diffs are asked for at once.",
                status=503,
                code="too_many_diffs",
                mend="Come back in a moment, or take the patch as a file.",
                retry_after=2,
            )
        self._waiting += 1
        try:
            async with self._working:
                return await asyncio.to_thread(self._made, diff, make)
        finally:
            self._waiting -= 1

    def _made(self, diff: bytes, make: Callable[[Sequence[DiffFile]], Made]) -> Made:
        name = hashlib.sha256(diff).digest()
        if name not in self._kept:
            files = self._read(diff)
            self._kept[name] = files, sum(file.size for file in files)
        self._kept.move_to_end(name)
        lines = sum(size for _, size in self._kept.values())
        while lines > self._most_lines and len(self._kept) > 1:
            _, (_, size) = self._kept.popitem(last=False)
            lines -= size
        return make(self._kept[name][0])
