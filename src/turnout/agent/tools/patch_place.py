"""Find where a patch belongs in a file, and write it so that `git apply` has no doubt. Pure."""

import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from turnout.agent.tools.closest import closest_region
from turnout.agent.tools.occurrences import occurrences
from turnout.agent.tools.patch_text import FilePatch, Hunk, Side
from turnout.errors import ToolError

__all__ = ["Change", "changes", "patched", "render"]

_CONTEXT = 3
_PLAIN = re.compile(r"[A-Za-z0-9._/+@=,-]+")
_NO_BREAK = b"\n\\ No newline at end of file\n"


@dataclass(frozen=True, slots=True)
class Change:
    """One line of a whole file as a patch leaves, takes or adds it, its line break included."""

    side: Side
    line: bytes


@dataclass(frozen=True, slots=True)
class _Placed:
    start: int
    end: int
    hunk: Hunk


def changes(data: bytes, patch: FilePatch) -> tuple[Change, ...]:
    """Return every line of the file with what becomes of it.

    `ToolError` where a hunk's old lines are not in the file or could be meant in several places.
    White space at the end of old lines is not compared, so that CRLF needs no care; nor is a
    byte order mark, which stays where it is.
    """
    if data.startswith(BOM_UTF8):
        return _marked(changes(data.removeprefix(BOM_UTF8), patch))
    lines = _split(data)
    keys = [_key(line) for line in lines]
    if patch.new is None:
        _check_deletion(keys, patch)
        return tuple(Change("-", line) for line in lines)
    placed = sorted((_place(keys, hunk) for hunk in patch.hunks), key=lambda p: (p.start, p.end))
    crlf = bool(lines) and all(line.endswith(b"\r\n") for line in lines[:-1] or lines)
    out: list[Change] = []
    at = 0
    for one in placed:
        if one.start < at:
            raise ToolError("Two hunks of the patch change the same lines; send them as one.")
        out += [Change(" ", line) for line in lines[at : one.start]]
        out += _applied(lines[one.start : one.end], one.hunk, crlf=crlf)
        at = one.end
    out += [Change(" ", line) for line in lines[at:]]
    return tuple(_terminated(out, _ends_without_break(lines, placed)))


def patched(all_changes: Iterable[Change]) -> bytes:
    """Return the file's new content."""
    return b"".join(change.line for change in all_changes if change.side != "-")


def render(patch: FilePatch, all_changes: Sequence[Change]) -> bytes:
    """Return one file's section of a unified diff for `git apply`."""
    old, new = patch.old or patch.new or "", patch.new or patch.old or ""
    head = [f"diff --git {_quote(f'a/{old}')} {_quote(f'b/{new}')}", *patch.modes]
    if patch.old is None and not patch.modes:
        head.append("new file mode 100644")
    if patch.new is None and not patch.modes:
        head.append("deleted file mode 100644")
    if patch.old and patch.new and old != new:
        head += [f"rename from {_quote(old)}", f"rename to {_quote(new)}"]
    body = b"".join(_hunks(all_changes))
    if body:
        head.append(f"--- {_quote(f'a/{old}') if patch.old else '/dev/null'}")
        head.append(f"+++ {_quote(f'b/{new}') if patch.new else '/dev/null'}")
    return "".join(f"{line}\n" for line in head).encode() + body


def _marked(all_changes: Sequence[Change]) -> tuple[Change, ...]:
    """Begin the old and the new file with a byte order mark."""
    out: list[Change] = []
    old = new = False
    for change in all_changes:
        begins_old = change.side != "+" and not old
        begins_new = change.side != "-" and not new
        marked = BOM_UTF8 + change.line.removeprefix(BOM_UTF8)
        if change.side == " " and begins_old != begins_new:
            out.append(Change("-", marked if begins_old else change.line))
            out.append(Change("+", marked if begins_new else change.line))
        else:
            out.append(Change(change.side, marked if begins_old or begins_new else change.line))
        old, new = old or begins_old, new or begins_new
    return tuple(out)


def _split(data: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _check_deletion(keys: list[bytes], patch: FilePatch) -> None:
    stated = [_key(line.text.encode()) for hunk in patch.hunks for line in hunk.lines]
    if stated and stated != keys:
        raise ToolError(
            f"The patch deletes `{patch.old}`, but its lines are not those of the file.",
            mend="Read the file again.",
        )


def _key(line: bytes) -> bytes:
    return line.removeprefix(BOM_UTF8).rstrip()


def _place(keys: list[bytes], hunk: Hunk) -> _Placed:
    old = [_key(line.text.encode()) for line in hunk.lines if line.side != "+"]
    if not old:
        return _place_insertion(keys, hunk)
    starts = _starts(keys, old)
    start = _choose(keys, hunk, starts)
    if start is None:
        raise _nowhere(keys, hunk) if not starts else _ambiguous(starts)
    return _Placed(start, start + len(old), hunk)


def _starts(keys: list[bytes], old: list[bytes]) -> list[int]:
    text = b"\n" + b"".join(key + b"\n" for key in keys)
    found = occurrences(text, b"\n" + b"".join(line + b"\n" for line in old))
    line, counted, starts = 0, 0, []
    for at in found:
        line += text.count(b"\n", counted, at)
        counted = at
        starts.append(line)
    return starts


def _place_insertion(keys: list[bytes], hunk: Hunk) -> _Placed:
    after = hunk.start if hunk.inserts else None
    if not keys:
        after = 0
    if after is None or after > len(keys):
        raise ToolError(
            "A hunk only adds lines and does not say where.",
            mend="Add the unchanged lines before and after the new ones, each with a space first.",
        )
    return _Placed(after, after, hunk)


def _choose(keys: list[bytes], hunk: Hunk, starts: list[int]) -> int | None:
    if len(starts) < 2:
        return starts[0] if starts else None
    if hunk.start is not None and hunk.start - 1 in starts:
        return hunk.start - 1
    heading = hunk.heading.encode().strip()
    anchors = [at for at, key in enumerate(keys) if heading and key.strip() == heading]
    below = [start for start in starts if len(anchors) == 1 and start > anchors[0]]
    return below[0] if below else None


def _applied(old: list[bytes], hunk: Hunk, *, crlf: bool) -> list[Change]:
    out: list[Change] = []
    kept = iter(old)
    for line in hunk.lines:
        if line.side == "+":
            text = line.text.encode()
            whole = text.removesuffix(b"\r") + b"\r\n" if crlf else text + b"\n"
            out.append(Change("+", whole))
        else:
            out.append(Change(line.side, next(kept)))
    return out


def _ends_without_break(lines: list[bytes], placed: list[_Placed]) -> bool:
    if placed and placed[-1].end == len(lines):
        marked = [line for line in placed[-1].hunk.lines if line.unterminated]
        if marked:
            return marked[-1].side != "-"
    return bool(lines) and not lines[-1].endswith(b"\n")


def _terminated(out: list[Change], without_break: bool) -> list[Change]:
    """Give every new line its line break but the last, which ends as the file is to end."""
    last = max((at for at, change in enumerate(out) if change.side != "-"), default=-1)
    done: list[Change] = []
    for at, change in enumerate(out):
        bare = change.line.removesuffix(b"\n")
        wanted = bare if at == last and without_break else bare + b"\n"
        if change.side == "-" or change.line == wanted:
            done.append(change)
        elif change.side == "+":
            done.append(Change("+", wanted.removesuffix(b"\r") if at == last else wanted))
        else:
            done += [Change("-", change.line), Change("+", wanted)]
    return done


def _nowhere(keys: list[bytes], hunk: Hunk) -> ToolError:
    wanted = "\n".join(line.text for line in hunk.lines if line.side != "+")
    text = b"\n".join(keys).decode(errors="backslashreplace")
    return ToolError(
        "The old lines of a hunk are not in the file; nothing was changed. The hunk has:\n"
        f"{wanted[:600]}",
        mend=f"\n{closest_region(text, wanted)}\nCopy the lines exactly as they are.",
    )


def _ambiguous(starts: list[int]) -> ToolError:
    places = ", ".join(str(start + 1) for start in starts[:10])
    return ToolError(
        f"The old lines of a hunk occur {len(starts)} times (from lines {places}); nothing was "
        "changed.",
        mend="Add unchanged lines around them until they are unique.",
    )


def _hunks(all_changes: Sequence[Change]) -> Iterable[bytes]:
    touched = [at for at, change in enumerate(all_changes) if change.side != " "]
    groups: list[list[int]] = []
    for at in touched:
        if groups and at - groups[-1][1] <= 2 * _CONTEXT:
            groups[-1][1] = at
        else:
            groups.append([at, at])
    old_line = new_line = 1
    counted = 0
    for first, last in groups:
        start, end = max(0, first - _CONTEXT), min(len(all_changes), last + _CONTEXT + 1)
        old_line += sum(change.side != "+" for change in all_changes[counted:start])
        new_line += sum(change.side != "-" for change in all_changes[counted:start])
        counted = start
        yield _hunk(all_changes[start:end], old_line, new_line)


def _hunk(part: Sequence[Change], old_line: int, new_line: int) -> bytes:
    old = sum(change.side != "+" for change in part)
    new = sum(change.side != "-" for change in part)
    # A side without lines names the line before it.
    old_at, new_at = old_line - (not old), new_line - (not new)
    lines = [f"@@ -{old_at},{old} +{new_at},{new} @@\n".encode()]
    for change in part:
        ended = change.line if change.line.endswith(b"\n") else change.line + _NO_BREAK
        lines.append(change.side.encode() + ended)
    return b"".join(lines)


def _quote(path: str) -> str:
    if _PLAIN.fullmatch(path):
        return path
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    escaped = "".join(f"\\{ord(c):03o}" if c < " " or c == "\x7f" else c for c in escaped)
    return f'"{escaped}"'
