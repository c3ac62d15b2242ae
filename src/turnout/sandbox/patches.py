"""Reading unified diffs, and refusing those that reach where a patch must not."""

import re
from dataclasses import dataclass, field

from turnout.errors import ToolError

__all__ = ["FilePatch", "Hunk", "check_patch", "names_git", "parse_patch"]

_MODES = (b"100644", b"100755", b"120000")
_HUNK = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_IGNORED_BY_HFS = dict.fromkeys(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF]
)
_MODE_LINES = (b"new file mode ", b"new mode ", b"old mode ", b"deleted file mode ")
_PATH_LINES = (b"rename from ", b"rename to ", b"copy from ", b"copy to ")
_ESCAPES = {
    b"n": b"\n",
    b"t": b"\t",
    b"r": b"\r",
    b'"': b'"',
    b"\\": b"\\",
    b"a": b"\a",
    b"b": b"\b",
}
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)


@dataclass(slots=True)
class Hunk:
    """One changed place."""

    start: int
    """First line in the old file, counting from 1; 0 for a new file."""
    lines: list[bytes] = field(default_factory=list)
    """Each with its leading space, plus, minus or backslash, without its end of line."""


@dataclass(slots=True)
class FilePatch:
    """What a patch does to one path."""

    old: bytes | None = None
    """None where the file is new."""
    new: bytes | None = None
    """None where the file is deleted."""
    modes: list[bytes] = field(default_factory=list)
    """Every mode that is named, such as `100644`."""
    hunks: list[Hunk] = field(default_factory=list)

    @property
    def path(self) -> bytes:
        """The path that changes."""
        return self.new or self.old or b""


def _unquote(name: bytes) -> bytes:
    """Undo git's C-style quoting of odd names, and drop a time stamp after a plain one."""
    name = name.rstrip(b"\r")
    if not (name.startswith(b'"') and name.endswith(b'"') and len(name) > 1):
        return name.split(b"\t")[0]

    def literal(match: re.Match[bytes]) -> bytes:
        code = match.group(1)
        return bytes([int(code, 8) & 0xFF]) if len(code) == 3 else _ESCAPES.get(code, code)

    return _ESCAPE.sub(literal, name[1:-1])


def _side(name: bytes, prefix: bytes) -> bytes | None:
    """Return the path of a `---` or `+++` line; None for `/dev/null`."""
    path = _unquote(name)
    if path == b"/dev/null":
        return None
    return path.removeprefix(prefix)


class _Reader:
    """Walks over the lines of a patch; what a hunk counts as its own is no header."""

    def __init__(self, patch: bytes) -> None:
        self.files: list[FilePatch] = []
        self._lines = patch.split(b"\n")
        self._at = 0
        self._seen_names = False

    def read(self) -> list[FilePatch]:
        while self._at < len(self._lines):
            line = self._lines[self._at]
            self._at += 1
            if line.startswith(b"diff --git "):
                self._begin(line[len(b"diff --git ") :])
            elif line.startswith(b"--- ") and self._peek().startswith(b"+++ "):
                self._names(line[4:], self._peek()[4:])
            elif (found := _HUNK.match(line)) and self.files:
                self._hunk(found)
            else:
                self._header(line)
        return self.files

    def _peek(self) -> bytes:
        return self._lines[self._at] if self._at < len(self._lines) else b""

    def _begin(self, names: bytes) -> None:
        """Take both names from the first line, for changes that name their paths nowhere else."""
        if names.startswith(b'"'):
            old, _, new = names.partition(b'" ')
            old += b'"'
        else:
            middle = len(names) // 2
            old, new = names[:middle], names[middle + 1 :]
            if old.removeprefix(b"a/") != new.removeprefix(b"b/"):
                old, _, new = names.partition(b" ")
        self.files.append(FilePatch(_side(old, b"a/"), _side(new, b"b/")))
        self._seen_names = False

    def _names(self, old: bytes, new: bytes) -> None:
        self._at += 1
        if self._seen_names or not self.files:
            self.files.append(FilePatch())
        self.files[-1].old = _side(old, b"a/")
        self.files[-1].new = _side(new, b"b/")
        self._seen_names = True

    def _header(self, line: bytes) -> None:
        if not self.files:
            return
        current = self.files[-1]
        for prefix in _MODE_LINES:
            if line.startswith(prefix):
                current.modes.append(line[len(prefix) :].strip())
                if prefix.startswith(b"new file"):
                    current.old = None
                elif prefix.startswith(b"deleted"):
                    current.new = None
        for prefix in _PATH_LINES:
            if line.startswith(prefix):
                side = "old" if prefix.endswith(b"from ") else "new"
                setattr(current, side, _unquote(line[len(prefix) :]))

    def _hunk(self, found: re.Match[bytes]) -> None:
        old_left = int(found.group(2) or b"1")
        new_left = int(found.group(4) or b"1")
        hunk = Hunk(int(found.group(1)))
        while self._at < len(self._lines) and (old_left > 0 or new_left > 0):
            line = self._lines[self._at] or b" "
            mark = line[:1]
            if mark not in b" +-\\":
                break
            old_left -= mark in b" -"
            new_left -= mark in b" +"
            hunk.lines.append(line)
            self._at += 1
        if self._peek().startswith(b"\\"):
            hunk.lines.append(self._peek())
            self._at += 1
        self.files[-1].hunks.append(hunk)


def parse_patch(patch: bytes) -> list[FilePatch]:
    """Return what a unified diff, git's or a plain one, does to each path."""
    return _Reader(patch).read()


def names_git(path: bytes) -> bool:
    """Whether any part of a path is a `.git`, or is one where the tree may be taken to.

    There are file systems that ignore case, some characters (HFS+), or dots, spaces and streams at
    the end, and that give a short name to each file (NTFS).
    """
    return any(_is_git(part) for part in path.split(b"/"))


def _is_git(part: bytes) -> bool:
    name = part.decode(errors="surrogateescape").translate(_IGNORED_BY_HFS).lower()
    name = name.partition(":")[0].rstrip(" .")
    return name in (".git", "git~1")


def _why_refused(path: bytes) -> str:
    parts = path.split(b"/")
    if path.startswith(b"/") or b".." in parts:
        return "leaves the workspace"
    if names_git(path):
        return "is git's own"
    return "" if path and b"\0" not in path else "is no path"


def check_patch(patch: bytes) -> tuple[str, ...]:
    """Return the paths that a patch changes; `ToolError` says why it is refused, and what helps."""
    changes = parse_patch(patch)
    if not changes:
        raise ToolError(
            "This is no unified diff.",
            mend="Send lines of the form `--- a/path`, `+++ b/path`, `@@ -1,3 +1,4 @@`.",
        )
    for change in changes:
        for path in {change.old, change.new} - {None}:
            reason = _why_refused(path or b"")
            if reason:
                shown = (path or b"").decode(errors="backslashreplace")
                raise ToolError(
                    f"The patch was refused: {shown} {reason}.",
                    mend="Name files by their path relative to the workspace, such as `src/a.py`.",
                )
        for mode in change.modes:
            if mode not in _MODES:
                raise ToolError(
                    f"The patch was refused: a file cannot get the mode {mode.decode('latin-1')}.",
                    mend="Use 100644, 100755 for a program, or 120000 for a link.",
                )
    return tuple(sorted({change.path.decode(errors="surrogateescape") for change in changes}))
