"""Read a patch as models write it: fenced, with prose around it, miscounted, or of another kind.

Unified diffs and the `*** Begin Patch` form are read. Counts and line numbers are only hints:
where a hunk belongs is found in the file (`patch_place`). Pure.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from turnout.errors import ToolError

__all__ = ["FilePatch", "Hunk", "HunkLine", "parse_patch"]

_RANGE = re.compile(r"@@\s*-(\d{1,9})(?:,(\d{1,9}))?\s+\+\d+(?:,(\d{1,9}))?\s*@@ ?(.*)")
_SECTION = re.compile(r"\*\*\* (Update|Add|Delete) File: (.+)")
_KEPT = re.compile(
    r"(?:old mode|new mode|new file mode|deleted file mode) \d{6}\s*"
    r"|index [0-9a-f]{4,64}\.\.[0-9a-f]{4,64} 120000\s*"
)
_ESCAPE = re.compile(rb'\\([0-7]{3}|["\\abfnrtv])')
_ESCAPES = dict(zip(b"abfnrtv", b"\a\b\f\n\r\t\v", strict=True))
_TIME = re.compile(r"\t(?:\d{4}-.*|[A-Z][a-z]{2} .*|\(.*\))?$")
_CRLF_HEADER = re.compile(r"^(?:diff --git |--- |\+\+\+ |@@ |\*\*\* ).*\r$", re.MULTILINE)

Side = Literal[" ", "-", "+"]


@dataclass(frozen=True, slots=True)
class HunkLine:
    """One line of a hunk."""

    side: Side
    text: str
    unterminated: bool = False
    """True where the patch says that no line break follows."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """One place to change."""

    lines: tuple[HunkLine, ...]
    start: int | None = None
    """First old line as stated, counted from 1; None where not stated."""
    inserts: bool = False
    """True where the header states that no old line is touched: insert after line `start`."""
    heading: str = ""
    """A line of the file, above the place."""


@dataclass(frozen=True, slots=True)
class FilePatch:
    """The changes of one file."""

    old: str | None
    """None for a new file."""
    new: str | None
    """None for a deleted file."""
    hunks: tuple[Hunk, ...]
    modes: tuple[str, ...] = ()
    """Mode lines of the header, as git writes them, and the `index` line of a link."""


@dataclass(slots=True)
class _Draft:
    old: str | None = None
    new: str | None = None
    modes: list[str] = field(default_factory=list)
    hunks: list[Hunk] = field(default_factory=list)


def parse_patch(text: str) -> tuple[FilePatch, ...]:
    """Return the changes of each file; `ToolError` where the text cannot be read for certain."""
    if _CRLF_HEADER.search(text):
        text = text.replace("\r\n", "\n")
    reader = _Reader(text.removeprefix("\ufeff").split("\n"))
    files = [_finished(draft) for draft in reader.drafts()]
    changing = [one for one in files if one.hunks or one.modes or one.old != one.new]
    if not changing:
        raise ToolError(
            "The patch holds no change that could be read.",
            mend="Send a unified diff: `--- a/PATH`, `+++ b/PATH`, then hunks that start with "
            "`@@ -LINE,COUNT +LINE,COUNT @@` and whose lines start with a space, `-` or `+`.",
        )
    return _joined(changing)


def _joined(files: list[FilePatch]) -> tuple[FilePatch, ...]:
    """Join sections of the same file, which git would refuse or apply one on the other."""
    joined: dict[tuple[str | None, str | None], FilePatch] = {}
    for one in files:
        name = (one.old, one.new)
        earlier = joined.get(name, FilePatch(one.old, one.new, ()))
        hunks, modes = (*earlier.hunks, *one.hunks), (*earlier.modes, *one.modes)
        joined[name] = FilePatch(one.old, one.new, hunks, modes)
    return tuple(joined.values())


class _Reader:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0

    def drafts(self) -> Iterator[_Draft]:
        draft: _Draft | None = None
        while self._at < len(self._lines):
            started = self._section(draft)
            if started is not None and started is not draft:
                if draft is not None:
                    yield draft
                draft = started
            elif started is None:
                self._other_line(draft)
        if draft is not None:
            yield draft

    def _section(self, draft: _Draft | None) -> _Draft | None:
        line = self._lines[self._at].rstrip("\r")
        if line.startswith("diff --git "):
            self._at += 1
            return _from_git_line(line)
        if self._is_header():
            old = _path(line[4:])
            new = _path(self._lines[self._at + 1][4:])
            self._at += 2
            if old is not None and new is not None:
                old, new = _without_prefixes(old, new)
            old = old.removeprefix("a/") if old and new is None else old
            new = new.removeprefix("b/") if new and old is None else new
            if draft is None or draft.hunks or _moves_another(draft, old, new):
                draft = _Draft()
            draft.old, draft.new = old, new
            return draft
        if section := _SECTION.match(line):
            return self._begin_patch_section(section[1], section[2].strip())
        return None

    def _begin_patch_section(self, verb: str, path: str) -> _Draft:
        self._at += 1
        draft = _Draft(None if verb == "Add" else path, None if verb == "Delete" else path)
        if verb == "Add":
            draft.hunks.append(Hunk(self._body(), 0, inserts=True))
        elif verb == "Update" and self._at < len(self._lines):
            moved = self._lines[self._at].rstrip("\r")
            if moved.startswith("*** Move to: "):
                draft.new = moved.removeprefix("*** Move to: ").strip()
                self._at += 1
            if self._at < len(self._lines) and not self._lines[self._at].startswith("@@"):
                draft.hunks.append(Hunk(self._body()))
        return draft

    def _other_line(self, draft: _Draft | None) -> None:
        line = self._lines[self._at].rstrip("\r")
        self._at += 1
        if line.startswith("+++ "):
            raise ToolError(
                f"Line {self._at} of the patch names a file, but no hunk follows.",
                mend="Start each hunk with a line `@@ -LINE,COUNT +LINE,COUNT @@`.",
            )
        if draft is None or line.startswith("*** "):
            return
        if line.startswith("@@"):
            draft.hunks.append(self._hunk(line))
        elif kept := _KEPT.fullmatch(line):
            draft.modes.append(kept[0].strip())
        elif line.startswith("rename from "):
            draft.old = _path(line.removeprefix("rename from "))
        elif line.startswith("rename to "):
            draft.new = _path(line.removeprefix("rename to "))
        elif line.startswith(("GIT binary patch", "Binary files ", "copy from ")):
            raise ToolError("Binary patches and copies cannot be applied.")
        elif line.startswith("```"):
            self._skip_prose()
        elif line.startswith(("+", "-")):
            raise ToolError(
                f"Line {self._at} of the patch follows a line that belongs to no hunk.",
                mend="Every line of a hunk starts with a space, `-` or `+`; unchanged lines with "
                "a space. Where words follow, put a fence around the patch.",
            )

    def _skip_prose(self) -> None:
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith(("diff --git ", "*** ", "+++ ")) or self._is_header():
                return
            self._at += 1

    def _hunk(self, line: str) -> Hunk:
        if ranges := _RANGE.fullmatch(line):
            body = self._body((int(ranges[2] or 1), int(ranges[3] or 1)))
            return Hunk(body, int(ranges[1]), ranges[2] == "0", ranges[4].strip())
        heading = line.removeprefix("@@").rstrip().removesuffix("@@").strip()
        return Hunk(self._body(), heading=heading)

    def _body(self, counts: tuple[int, int] = (0, 0)) -> tuple[HunkLine, ...]:
        taken: list[HunkLine] = []
        blanks = 0
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if self._is_header() and not self._is_content(taken, blanks, counts):
                break
            if line.startswith("\\"):
                if taken:
                    last = taken[-1]
                    taken[-1] = HunkLine(last.side, last.text, unterminated=True)
            elif line in {"", "\r"}:
                blanks += 1
            elif side := _side(line):
                taken += [HunkLine(" ", "")] * blanks
                taken.append(HunkLine(side, line[1:]))
                blanks = 0
            else:
                break
            self._at += 1
        return tuple(taken)

    def _is_content(self, taken: list[HunkLine], blanks: int, counts: tuple[int, int]) -> bool:
        """Whether a header can only be two lines of a hunk, which lacks them or would be empty.

        What may name one file twice is a header whatever the counts are.
        """
        old = blanks + sum(line.side != "+" for line in taken)
        new = blanks + sum(line.side != "-" for line in taken)
        if taken and (old + 1, new + 1) != counts:
            return False
        names = [_path(line[4:]) for line in self._lines[self._at : self._at + 2]]
        prefixes = any(name and name.startswith(("a/", "b/")) for name in names)
        return None not in names and names[0] != names[1] and not prefixes

    def _is_header(self) -> bool:
        ahead = self._lines[self._at : self._at + 3]
        marks = ("--- ", "+++ ", "@@")
        return len(ahead) == 3 and all(
            line.startswith(mark) for line, mark in zip(ahead, marks, strict=True)
        )


def _moves_another(draft: _Draft, old: str | None, new: str | None) -> bool:
    moves = None not in (draft.old, draft.new) and draft.old != draft.new
    return moves and (old, new) != (draft.old, draft.new)


def _finished(draft: _Draft) -> FilePatch:
    if draft.old is None and draft.new is None:
        raise ToolError("A section of the patch names no file.")
    old = None if any(mode.startswith("new file") for mode in draft.modes) else draft.old
    hunks = draft.hunks if old is not None else [_all_added(hunk) for hunk in draft.hunks]
    changing = tuple(h for h in hunks if any(line.side != " " for line in h.lines))
    new = None if any(mode.startswith("deleted file") for mode in draft.modes) else draft.new
    return FilePatch(old, new, changing, tuple(draft.modes))


def _all_added(hunk: Hunk) -> Hunk:
    # In a new file a line without a mark, mostly a blank one, can only be an added line.
    lines = tuple(HunkLine("+", line.text, line.unterminated) for line in hunk.lines)
    return replace(hunk, lines=lines)


def _side(line: str) -> Side | None:
    match line[0]:
        case " " | "-" | "+" as side:
            return side
        case _:
            return None


def _from_git_line(line: str) -> _Draft:
    # `a/P b/P`, where P may hold spaces, has a known length; other names come in later lines.
    rest = line.removeprefix("diff --git ")
    half = (len(rest) - 5) // 2
    old, new = rest[2 : 2 + half], rest[len(rest) - half :]
    same = rest == f"a/{old} b/{new}" and old == new
    return _Draft(old, new) if same else _Draft()


def _without_prefixes(old: str, new: str) -> tuple[str, str]:
    plain = old.removeprefix("a/"), new.removeprefix("b/")
    if (old.startswith("a/") and new.startswith("b/")) or plain[0] == plain[1]:
        return plain
    return old, new


def _path(written: str) -> str | None:
    text = _TIME.sub("", written.rstrip("\r")).strip()
    if text == "/dev/null":
        return None
    if len(text) > 1 and text.startswith('"') and text.endswith('"'):
        return _ESCAPE.sub(_unescape, text[1:-1].encode()).decode(errors="replace")
    return text


def _unescape(found: re.Match[bytes]) -> bytes:
    code = found[1]
    if len(code) == 3:
        return bytes([int(code, 8) & 0xFF])
    return bytes([_ESCAPES.get(code[0], code[0])])
