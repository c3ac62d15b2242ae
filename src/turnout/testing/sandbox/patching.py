"""Unified diffs over files in memory, for `ScriptedSandbox`."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from turnout.core.runs import FileChange, Patch
from turnout.sandbox.patches import FilePatch, Hunk, parse_patch

__all__ = ["FakeFile", "apply_to", "difference"]

_NO_NEWLINE = b"\\ No newline at end of file\n"
_CONTEXT = 3


@dataclass(frozen=True, slots=True)
class FakeFile:
    """A file in memory."""

    data: bytes
    mode: int = 0o644


def _lines_of(hunk: Hunk, marks: bytes) -> list[bytes]:
    """Return one side of a hunk as lines with their ends."""
    lines: list[bytes] = []
    belongs = False
    for line in hunk.lines:
        if line[:1] == b"\\":
            if belongs:
                lines[-1] = lines[-1].removesuffix(b"\n")
            continue
        belongs = line[:1] in marks
        if belongs:
            lines.append(line[1:] + b"\n")
    return lines


def _position(content: list[bytes], wanted: list[bytes], near: int) -> int | None:
    """Return where the old lines are, the nearest place first; None where they are not.

    As for git, a hunk of the first line stays there.
    """
    places = sorted(range(len(content) - len(wanted) + 1), key=lambda place: abs(place - near))
    for place in places[:1] if near == 0 else places:
        if content[place : place + len(wanted)] == wanted:
            return place
    return None


def _changed(path: str, data: bytes, hunks: Iterable[Hunk]) -> bytes:
    content = data.splitlines(keepends=True)
    shift = 0
    for hunk in hunks:
        old, new = _lines_of(hunk, b" -"), _lines_of(hunk, b" +")
        near = max(0, hunk.start - 1) + shift
        place = _position(content, old, near)
        if place is None:
            raise ValueError(f"error: patch failed: {path}:{hunk.start}")
        content[place : place + len(old)] = new
        shift += len(new) - len(old)
    return b"".join(content)


def _apply_one(files: dict[str, FakeFile], change: FilePatch) -> None:
    old = None if change.old is None else change.old.decode(errors="surrogateescape")
    new = None if change.new is None else change.new.decode(errors="surrogateescape")
    if old is not None and old not in files:
        raise ValueError(f"error: {old}: No such file or directory")
    if old is None and new in files:
        raise ValueError(f"error: {new}: already exists in working directory")
    before = FakeFile(b"") if old is None else files[old]
    data = _changed(new or old or "", before.data, change.hunks)
    mode = int(change.modes[-1], 8) & 0o777 if change.modes and new else before.mode
    if old is not None and old != new:
        del files[old]
    if new is not None:
        files[new] = FakeFile(data, mode)


def apply_to(files: Mapping[str, FakeFile], patch: bytes) -> dict[str, FakeFile]:
    """Return the files after a patch; `ValueError` in git's words where it does not apply."""
    result = dict(files)
    for change in parse_patch(patch):
        _apply_one(result, change)
    return result


def _header(path: str, before: FakeFile | None, after: FakeFile | None) -> list[bytes]:
    name = path.encode(errors="surrogateescape")
    lines = [b"diff --git a/%s b/%s\n" % (name, name)]
    if before is None and after is not None:
        lines.append(b"new file mode 100%o\n" % after.mode)
    elif after is None and before is not None:
        lines.append(b"deleted file mode 100%o\n" % before.mode)
    elif before is not None and after is not None and before.mode != after.mode:
        lines += [b"old mode 100%o\n" % before.mode, b"new mode 100%o\n" % after.mode]
    return lines


def _difference_of(
    path: str, before: FakeFile | None, after: FakeFile | None
) -> tuple[list[bytes], FileChange]:
    name = path.encode(errors="surrogateescape")
    old = before.data if before else b""
    new = after.data if after else b""
    lines = _header(path, before, after)
    status: Literal["added", "modified", "deleted"] = "deleted"
    if after is not None:
        status = "added" if before is None else "modified"
    if b"\0" in old + new:
        lines.append(b"Binary files differ\n")
        return lines, FileChange(path, status, None, None)
    body = list(
        difflib.diff_bytes(
            difflib.unified_diff,
            old.splitlines(keepends=True),
            new.splitlines(keepends=True),
            b"a/" + name if before else b"/dev/null",
            b"b/" + name if after else b"/dev/null",
            n=_CONTEXT,
        )
    )
    for line in body:
        lines += [line] if line.endswith(b"\n") else [line + b"\n", _NO_NEWLINE]
    added = sum(line.startswith(b"+") for line in body[2:])
    deleted = sum(line.startswith(b"-") for line in body[2:])
    return lines, FileChange(path, status, added, deleted)


def difference(before: Mapping[str, FakeFile], after: Mapping[str, FakeFile]) -> Patch:
    """Return the patch that leads from one set of files to the other."""
    lines: list[bytes] = []
    changes = []
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) != after.get(path):
            piece, change = _difference_of(path, before.get(path), after.get(path))
            lines += piece
            changes.append(change)
    return Patch(b"".join(lines), tuple(changes))
