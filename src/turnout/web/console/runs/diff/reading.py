"""A unified diff cut into files, hunks and lines, for a page; nothing in it is trusted or lost.

What is no part of a hunk, such as the marks of a binary file, is kept as it came.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final, Literal, NamedTuple

__all__ = ["DiffFile", "DiffLine", "Hunk", "Pair", "pairs_of", "read_diff"]

_HUNK: Final = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@(.*)")
_NAMES: Final = ("--- ", "+++ ")
_ESCAPE: Final = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_ESCAPED: Final = dict(zip(b"abtnvfr", b"\a\b\t\n\v\f\r", strict=True))

LineKind = Literal["same", "added", "deleted"]


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a hunk, without its sign."""

    kind: LineKind
    text: str
    old: int | None
    """Its number in the old file; None where it is not in it."""
    new: int | None
    ends: bool = True
    """False where the file ends with it and has no line break there."""


@dataclass(slots=True)
class Hunk:
    """One changed place."""

    head: str
    """Its line `@@ … @@`."""
    lines: list[DiffLine] = field(default_factory=list)


@dataclass(slots=True)
class DiffFile:
    """What a diff does to one path."""

    path: str = ""
    """After the change; before it where the file is deleted."""
    was: str = ""
    """Another path before; empty where it is the same, or the file is new."""
    status: Literal["changed", "added", "deleted", "renamed"] = "changed"
    notes: list[str] = field(default_factory=list)
    """Lines that stand before its hunks, but those that only repeat the path."""
    hunks: list[Hunk] = field(default_factory=list)

    @property
    def added(self) -> int:
        """How many lines it adds."""
        return sum(line.kind == "added" for hunk in self.hunks for line in hunk.lines)

    @property
    def deleted(self) -> int:
        """How many lines it deletes."""
        return sum(line.kind == "deleted" for hunk in self.hunks for line in hunk.lines)

    @property
    def size(self) -> int:
        """How many lines its hunks have."""
        return sum(len(hunk.lines) for hunk in self.hunks)


class Pair(NamedTuple):
    """What stands side by side; None: nothing stands there."""

    old: DiffLine | None
    new: DiffLine | None


def read_diff(diff: bytes) -> list[DiffFile]:
    """Return the files of a diff, in order; bytes that are no UTF-8 become escapes."""
    reader = _Reader(diff.decode(errors="backslashreplace").split("\n"))
    return list(reader.files())


def pairs_of(lines: Sequence[DiffLine]) -> Iterator[Pair]:
    """Yield a hunk's lines side by side: what was deleted beside what was added in its place."""
    gone: list[DiffLine] = []
    came: list[DiffLine] = []
    for line in lines:
        if line.kind == "deleted" and came:
            yield from map(Pair._make, zip_longest(gone, came))
            gone, came = [line], []
        elif line.kind == "deleted":
            gone.append(line)
        elif line.kind == "added":
            came.append(line)
        else:
            yield from map(Pair._make, zip_longest(gone, came))
            gone, came = [], []
            yield Pair(line, line)
    yield from map(Pair._make, zip_longest(gone, came))


class _Reader:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines[:-1] if lines and not lines[-1] else lines
        self._at = 0

    def files(self) -> Iterator[DiffFile]:
        file: DiffFile | None = None
        while self._at < len(self._lines):
            line = self._lines[self._at]
            found = _HUNK.fullmatch(line)
            self._at += 1
            if line.startswith("diff --git "):
                if file is not None:
                    yield file
                file = DiffFile(_between(line))
            elif found is not None:
                file = file or DiffFile()
                file.hunks.append(self._hunk(line, found))
            else:
                file = file or DiffFile()
                _note(file, line)
        if file is not None:
            yield file

    def _hunk(self, head: str, found: re.Match[str]) -> Hunk:
        """Read as many lines as the head says, or fewer where another begins before."""
        old, new = int(found[1]), int(found[3])
        olds, news = _count(found[2]), _count(found[4])
        hunk = Hunk(head)
        while (olds or news) and self._at < len(self._lines):
            line = self._lines[self._at]
            sign, text = line[:1], line[1:]
            if sign == "+" and news:
                hunk.lines.append(DiffLine("added", text, None, new))
                new, news = new + 1, news - 1
            elif sign == "-" and olds:
                hunk.lines.append(DiffLine("deleted", text, old, None))
                old, olds = old + 1, olds - 1
            elif sign in {" ", ""} and olds and news:
                hunk.lines.append(DiffLine("same", text, old, new))
                old, new, olds, news = old + 1, new + 1, olds - 1, news - 1
            elif sign == "\\":
                _end_without_break(hunk)
            else:
                break
            self._at += 1
        if self._at < len(self._lines) and self._lines[self._at].startswith("\\"):
            _end_without_break(hunk)
            self._at += 1
        return hunk


def _count(text: str | None) -> int:
    return 1 if text is None else int(text)


def _end_without_break(hunk: Hunk) -> None:
    if hunk.lines:
        last = hunk.lines[-1]
        hunk.lines[-1] = DiffLine(last.kind, last.text, last.old, last.new, ends=False)


def _between(line: str) -> str:
    """Return the path of a line `diff --git a/PATH b/PATH`, as far as it can be told."""
    names = line.removeprefix("diff --git ")
    half = len(names) // 2
    old, new = _plain(names[:half]), _plain(names[half + 1 :])
    return new[2:] if names[half : half + 1] == " " and old[2:] == new[2:] else names


def _plain(name: str) -> str:
    """Return a name as it is that git has put in quotes, which it does with any but plain ASCII."""
    if len(name) < 2 or not (name[0] == name[-1] == '"'):
        return name
    text = name[1:-1].encode()
    return _ESCAPE.sub(_unescaped, text).decode(errors="backslashreplace")


def _unescaped(found: re.Match[bytes]) -> bytes:
    said = found[1]
    code = int(said, 8) & 0xFF if len(said) == 3 else _ESCAPED.get(said[0], said[0])
    return bytes([code])


def _note(file: DiffFile, line: str) -> None:
    """Take in a line that stands before the hunks of a file."""
    if line.startswith("new file mode "):
        file.status = "added"
    elif line.startswith("deleted file mode "):
        file.status = "deleted"
    elif line.startswith("rename from "):
        file.status, file.was = "renamed", _plain(line.removeprefix("rename from "))
    elif line.startswith("rename to "):
        file.path = _plain(line.removeprefix("rename to "))
    elif line.startswith(_NAMES):
        name = _plain(line[4:].partition("\t")[0])
        if name != "/dev/null":
            file.path = name[2:] if name[:2] in {"a/", "b/"} else name
    elif line and not line.startswith("index "):
        file.notes.append(line)
