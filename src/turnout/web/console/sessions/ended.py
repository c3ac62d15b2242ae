"""Sessions that somebody has signed out of: their cookies open nothing any more.

They are kept until they would have ended by themselves, in a file that every process of a state
folder reads.
"""

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from turnout.core.clock import Clock
from turnout.errors import StoreError

__all__ = ["EndedSessions"]

_MOST_OF_KEY: Final = 1_000
"""Sessions of one key that are kept one by one; beyond that all that it has had are over."""
_OLD: Final = 500
"""Lines that count no more, after which a file is written anew without them."""


@dataclass(frozen=True, slots=True)
class _Line:
    digest: str
    """What the key is known by."""
    mark: str
    """Stands for the session; empty for all of the key that end no later."""
    until: float
    """When the session would have ended, in seconds of the epoch."""


class EndedSessions:
    """What was signed out of; without a file, in this process alone."""

    def __init__(self, clock: Clock, file: Path | None = None) -> None:
        self._clock = clock
        self._file = file
        self._seen: tuple[int, int] | None = None
        self._marks: set[str] = set()
        self._all: dict[str, float] = {}
        self._counts: dict[str, int] = {}

    def has(self, digest: str, mark: str, until: float) -> bool:
        """Whether a session is over; `StoreError` where that cannot be read."""
        self._refresh()
        return mark in self._marks or until <= self._all.get(digest, 0.0)

    def add(self, digest: str, mark: str, until: float) -> None:
        """End one session; with an empty `mark` all of the key that end no later than `until`.

        `StoreError` where that cannot be kept.
        """
        self._refresh()
        if self._counts.get(digest, 0) >= _MOST_OF_KEY:
            mark = ""
        line = _Line(digest, mark, until)
        if self._file is not None:
            self._write(self._file, line)
        self._take(line)

    def _take(self, line: _Line) -> None:
        if line.mark:
            self._marks.add(line.mark)
            self._counts[line.digest] = self._counts.get(line.digest, 0) + 1
        else:
            self._all[line.digest] = max(line.until, self._all.get(line.digest, 0.0))

    def _refresh(self) -> None:
        if self._file is None:
            return
        try:
            found = self._file.stat()
        except FileNotFoundError:
            return
        except OSError as error:
            raise _unkept(self._file, error) from error
        if (found.st_mtime_ns, found.st_size) == self._seen:
            return
        try:
            lines = _read(self._file.read_bytes(), self._clock.now().timestamp())
        except OSError as error:
            raise _unkept(self._file, error) from error
        self._marks, self._all, self._counts = set(), {}, {}
        for line in lines:
            self._take(line)
        self._seen = (found.st_mtime_ns, found.st_size)

    def _write(self, file: Path, line: _Line) -> None:
        """Add a line, one process at a time; a file with many old ones is written anew."""
        said = _said(line)
        try:
            handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "r+b") as opened:
                fcntl.flock(opened, fcntl.LOCK_EX)
                content = opened.read()
                kept = _read(content, self._clock.now().timestamp())
                if content.count(b"\n") - len(kept) > _OLD:
                    opened.truncate(0)
                    said = b"".join(map(_said, kept)) + said
                opened.write(said)
        except OSError as error:
            raise _unkept(file, error) from error


def _said(line: _Line) -> bytes:
    return orjson.dumps([line.digest, line.mark, line.until]) + b"\n"


def _read(content: bytes, now: float) -> list[_Line]:
    """Return what counts yet; a line that is not whole counts for nothing."""
    found: list[_Line] = []
    for each in content.splitlines():
        try:
            digest, mark, until = orjson.loads(each)
            line = _Line(str(digest), str(mark), float(until))
        except (ValueError, TypeError):
            continue
        if line.until > now:
            found.append(line)
    return found


def _unkept(file: Path, error: OSError) -> StoreError:
    return StoreError(
        f"Who has signed out cannot be kept in {file}: {error.strerror}.",
        mend="Let the user of the service write the state folder.",
    )
