"""Find where a patch belongs in a file, and what the file becomes. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from turnout.agent.tools.closest import closest_region
from turnout.agent.tools.patch_text import FilePatch, Hunk
from turnout.agent.tools.placing import Likeness, find_block
from turnout.agent.tools.rewriting import rewritten
from turnout.agent.tools.texts import Line, Text, decoded, ended, unescaped, usual_end
from turnout.errors import ToolError

__all__ = ["Patched", "patched"]


@dataclass(frozen=True, slots=True)
class Patched:
    """What a patch makes of one file."""

    data: bytes
    likenesses: tuple[Likeness, ...] = ()
    """How each hunk was found."""


@dataclass(frozen=True, slots=True)
class _Placed:
    start: int
    end: int
    hunk: Hunk
    likeness: Likeness


def patched(data: bytes, patch: FilePatch) -> Patched:
    """Return what a file becomes; empty where it is deleted.

    `ToolError` where a hunk's old lines are not in the file or could be meant in several places.
    Bytes of lines that the patch does not change stay as they are.
    """
    text = decoded(data)
    lines = text.lines()
    if patch.new is None:
        _check_deletion(lines, patch)
        return Patched(b"")
    hunks = [_as_in_file(hunk, text) for hunk in patch.hunks]
    placed = sorted((_place(lines, hunk) for hunk in hunks), key=lambda p: (p.start, p.end))
    usual = usual_end(lines)
    out: list[Line] = []
    at = 0
    for one in placed:
        if one.start < at:
            raise ToolError("Two hunks of the patch change the same lines; send them as one.")
        text.check_added("".join(line.text for line in one.hunk.lines if line.side == "+"))
        out += lines[at : one.start]
        above = lines[one.start - 1].end if one.start else ""
        block = lines[one.start : one.end]
        out += rewritten(block, one.hunk.lines, one.likeness, above or usual)
        at = one.end
    out += lines[at:]
    whole = ended(out, usual, open_end=_ends_open(lines, placed))
    return Patched(text.encoded(whole), tuple(one.likeness for one in placed))


def _as_in_file(hunk: Hunk, text: Text) -> Hunk:
    """Undo how the file was shown: with its byte order mark, or with escapes for stray bytes."""
    if not text.mark and not text.strays:
        return hunk
    plain = [line.text.removeprefix("\ufeff") if text.mark else line.text for line in hunk.lines]
    old = [said for said, line in zip(plain, hunk.lines, strict=True) if line.side != "+"]
    escapes = text.escapes(old)
    lines = zip(hunk.lines, plain, strict=True)
    return replace(hunk, lines=tuple(replace(o, text=unescaped(t, escapes)) for o, t in lines))


def _check_deletion(lines: Sequence[Line], patch: FilePatch) -> None:
    stated = [line.text.rstrip() for hunk in patch.hunks for line in hunk.lines]
    if stated and stated != [line.body.rstrip() for line in lines]:
        raise ToolError(
            f"The patch deletes `{patch.old}`, but its lines are not those of the file.",
            mend="Read the file again.",
        )


def _place(lines: Sequence[Line], hunk: Hunk) -> _Placed:
    old = [line.text for line in hunk.lines if line.side != "+"]
    if not old:
        return _place_insertion(lines, hunk)
    found = find_block(lines, old)
    start = found.starts[0] if len(found.starts) == 1 else None
    if start is None and found.likeness in ("exact", "blanks"):
        start = _choose(lines, hunk, found.starts)
    if start is None:
        raise _ambiguous(found.starts) if found.starts else _nowhere(lines, hunk)
    return _Placed(start, start + len(old), hunk, found.likeness)


def _place_insertion(lines: Sequence[Line], hunk: Hunk) -> _Placed:
    after = hunk.start if hunk.inserts else None
    headed = _headed(lines, hunk)
    if not lines:
        after = 0
    elif hunk.start is None and len(headed) == 1:
        after = headed[0] + 1
    if after is None or after > len(lines):
        raise ToolError(
            "A hunk only adds lines and does not say where.",
            mend="Add the unchanged lines before and after the new ones, each with a space first.",
        )
    return _Placed(after, after, hunk, "exact")


def _choose(lines: Sequence[Line], hunk: Hunk, starts: Sequence[int]) -> int | None:
    """Tell between several places by the stated line or by the line above."""
    if hunk.start is not None and hunk.start - 1 in starts:
        return hunk.start - 1
    anchors = _headed(lines, hunk)
    below = [start for start in starts if len(anchors) == 1 and start > anchors[0]]
    return below[0] if below else None


def _headed(lines: Sequence[Line], hunk: Hunk) -> list[int]:
    heading = hunk.heading.strip()
    return [at for at, line in enumerate(lines) if heading and line.body.strip() == heading]


def _ends_open(lines: Sequence[Line], placed: Sequence[_Placed]) -> bool:
    """Whether the last line of the new file has no line break."""
    if placed and placed[-1].end == len(lines):
        marked = [line for line in placed[-1].hunk.lines if line.unterminated]
        if marked:
            return marked[-1].side != "-"
    return bool(lines) and not lines[-1].end


def _nowhere(lines: Sequence[Line], hunk: Hunk) -> ToolError:
    wanted = "\n".join(line.text for line in hunk.lines if line.side != "+")
    return ToolError(
        "The old lines of a hunk are not in the file; nothing was changed. The hunk has:\n"
        f"{wanted[:600]}",
        mend=f"\n{closest_region([line.body for line in lines], wanted)}\n"
        "Copy the lines exactly as they are.",
    )


def _ambiguous(starts: Sequence[int]) -> ToolError:
    places = ", ".join(str(start + 1) for start in starts[:10])
    return ToolError(
        f"The old lines of a hunk occur {len(starts)} times (from lines {places}); nothing was "
        "changed.",
        mend="Add unchanged lines around them until they are unique.",
    )
