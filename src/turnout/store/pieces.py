"""Cuts bytes where their content says so: what two streams share is cut alike in both."""

import zlib
from collections.abc import Iterator
from typing import Final

__all__ = ["LARGEST", "Cutter"]

LARGEST: Final = 1 << 18
"""Bytes of a piece at most."""

_SMALLEST: Final = 1 << 14
_ONE_IN: Final = 512
"""Lines after one of which a piece may end."""


class Cutter:
    """Takes a stream as it comes and gives it back in pieces.

    A piece ends after a line whose checksum has certain bits, so that what is put in or taken out
    somewhere changes the pieces around it and no others.
    """

    def __init__(self) -> None:
        self._rest = bytearray()
        self._looked = 0
        """Bytes of the rest in which no piece ends."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take more and yield the pieces that are complete by now."""
        self._rest += data
        while (end := self._end()) is not None:
            yield bytes(self._rest[:end])
            del self._rest[:end]
            self._looked = 0

    def close(self) -> Iterator[bytes]:
        """Yield what is left."""
        if self._rest:
            yield bytes(self._rest)
            self._rest.clear()

    def _end(self) -> int | None:
        rest = self._rest
        if not self._looked:
            # A piece is that long at least: what comes before is not looked at.
            self._looked = rest.find(b"\n", _SMALLEST - 1, LARGEST) + 1
        while self._looked and (line := rest.find(b"\n", self._looked, LARGEST) + 1) > 0:
            chosen = zlib.crc32(memoryview(rest)[self._looked : line]) % _ONE_IN == 0
            self._looked = line
            if chosen:
                return line
        return LARGEST if len(rest) >= LARGEST else None
