"""What a call that waits for a person would change, as a diff; nothing of it is left out."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from turnout.core.tools import ToolCall
from turnout.web.console.runs.diff.reading import DiffFile, DiffLine, Hunk

__all__ = ["changes_of"]

_LONGEST: Final = 100_000
"""Characters of arguments beyond which they are shown as they came."""
_MOST_LINES: Final = 2_000
_HEAD: Final = re.compile(r"@@ -(\d{1,9})(?:,\d{1,9})? \+(\d{1,9})(?:,\d{1,9})? @@.*")
_NOTHING: Final = "/dev/null"


def changes_of(call: ToolCall) -> Sequence[DiffFile]:
    """Return the files that a call changes; empty where it is another call, or a long one.

    Line numbers and counts of a patch are a model's: it is read line by line, and a line that
    fits nowhere is shown where it stands.
    """
    try:
        given = json.loads(call.arguments) if len(call.arguments) <= _LONGEST else None
    except (ValueError, RecursionError):
        return ()
    if not isinstance(given, dict):
        return ()
    files = tuple(_files(call.name, given))
    return files if sum(file.size for file in files) <= _MOST_LINES else ()


def _files(tool: str, given: dict[str, Any]) -> Iterator[DiffFile]:
    match tool, given:
        case "apply_patch", {"diff": str(diff)}:
            yield from _patched(diff.splitlines())
        case "edit_file", {"path": str(path), "old": str(old), "new": str(new)}:
            times = given.get("count", 1)
            many = f"{times!s:.20}" if isinstance(times, int) else "some"
            head = "the one place that says this" if times == 1 else f"{many} places"
            yield DiffFile(
                path,
                status="changed" if old else "added",
                hunks=[Hunk(f"@@ {head} @@" if old else "@@ the whole file @@", _edit(old, new))],
            )
        case "write_file", {"path": str(path), "content": str(content)}:
            lines = [DiffLine("added", text, None, n) for n, text in _numbered(content)]
            yield DiffFile(path, hunks=[Hunk("@@ the whole file, whatever is in it now @@", lines)])
        case _:
            return


def _numbered(text: str) -> Iterator[tuple[int, str]]:
    return enumerate(text.splitlines(), 1)


def _edit(old: str, new: str) -> list[DiffLine]:
    """Return what goes and what comes, with the lines that stay before and behind it."""
    gone, came = old.splitlines(), new.splitlines()
    fewest = min(len(gone), len(came))
    first = next((n for n in range(fewest) if gone[n] != came[n]), fewest)
    room = fewest - first
    last = next((n for n in range(room) if gone[-1 - n] != came[-1 - n]), room)
    middle = [DiffLine("deleted", text, None, None) for text in gone[first : len(gone) - last]]
    middle += [DiffLine("added", text, None, None) for text in came[first : len(came) - last]]
    before, behind = gone[:first], gone[len(gone) - last :]
    same = [[DiffLine("same", text, None, None) for text in part] for part in (before, behind)]
    return [*same[0], *middle, *same[1]]


def _patched(lines: Sequence[str]) -> Iterator[DiffFile]:
    file: DiffFile | None = None
    old = new = 0
    for at, line in enumerate(lines):
        following = lines[at + 1] if at + 1 < len(lines) else ""
        begins = line.startswith("--- ") and following.startswith("+++ ")
        if begins:
            if file is not None:
                yield file
            file = _named(line[4:], following[4:])
            continue
        if file is None:
            file = DiffFile("(no file is named)")
        if line.startswith("+++ ") and at and lines[at - 1].startswith("--- "):
            continue
        found = _HEAD.match(line)
        if line.startswith("@@"):
            old, new = (int(found[1]), int(found[2])) if found else (0, 0)
            file.hunks.append(Hunk(line))
            continue
        if not file.hunks:
            file.hunks.append(Hunk("@@"))
        sign, text = line[:1], line[1:]
        kind = {"+": "added", "-": "deleted"}.get(sign)
        if kind == "added":
            file.hunks[-1].lines.append(DiffLine("added", text, None, new or None))
            new += bool(new)
        elif kind == "deleted":
            file.hunks[-1].lines.append(DiffLine("deleted", text, old or None, None))
            old += bool(old)
        else:
            shown = text if sign == " " else line
            file.hunks[-1].lines.append(DiffLine("same", shown, old or None, new or None))
            old, new = old + bool(old), new + bool(new)
    if file is not None:
        yield file


def _named(before: str, after: str) -> DiffFile:
    """Return a file without changes by the two lines that name it."""
    old, new = (name.partition("\t")[0].strip() for name in (before, after))
    if old == _NOTHING:
        return DiffFile(new.removeprefix("b/"), status="added")
    if new == _NOTHING:
        return DiffFile(old.removeprefix("a/"), status="deleted")
    old, new = old.removeprefix("a/"), new.removeprefix("b/")
    return DiffFile(new, "" if old == new else old, "changed" if old == new else "renamed")
