"""Replace a snippet of a file where it is certain which one is meant. Pure."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from turnout.agent.tools.closest import closest_region
from turnout.agent.tools.files import LARGEST
from turnout.agent.tools.occurrences import MOST, occurrences
from turnout.agent.tools.patch_text import HunkLine
from turnout.agent.tools.placing import Likeness, find_block
from turnout.agent.tools.rewriting import rewritten
from turnout.agent.tools.texts import Line, Text, common, decoded, ended, unescaped, usual_end
from turnout.errors import ToolError

__all__ = ["Replaced", "replace_all", "replace_once"]

_LISTED = 10
_MOST_REPLACED = 100_000
_COMPARED = 250_000


@dataclass(frozen=True, slots=True)
class Replaced:
    """A file after an edit."""

    data: bytes
    likeness: Likeness = "exact"
    """How the snippet was found."""
    count: int = 1


def replace_once(data: bytes, old: str, new: str) -> Replaced:
    r"""Return a file with the only occurrence of `old` replaced.

    Bytes outside it stay as they are. `\n` in `old` stands for any line break of the file. Where
    there is no occurrence, whole lines are found that differ in blanks or in characters that look
    alike, and `new` is written as the file is. `ToolError` where nothing or more than one place is
    found.
    """
    text, old, new = _prepared(data, old, new)
    found = _exact(text.text, old)
    if len(found) > 1:
        raise _ambiguous(text.text, [start for start, _ in found])
    if not found:
        return _by_likeness(text, old, new)
    start, end = found[0]
    return Replaced(text.encoded(_spliced(text.text, [(start, end)], old, new)))


def replace_all(data: bytes, old: str, new: str, count: int) -> Replaced:
    """Return a file with every exact occurrence of `old` replaced, in one pass from its start.

    `ToolError` where there are not `count` of them.
    """
    text, old, new = _prepared(data, old, new)
    if count * len(new) > LARGEST:
        raise ToolError(f"The file would have more than {LARGEST} bytes.")
    places = _exact(text.text, old, min(count, _MOST_REPLACED) + 1, overlapping=False)
    if not places:
        raise _nowhere(text.lines(), old)
    if len(places) != count:
        raise _ambiguous(text.text, [start for start, _ in places])
    return Replaced(text.encoded(_spliced(text.text, places, old, new)), count=count)


def _prepared(data: bytes, old: str, new: str) -> tuple[Text, str, str]:
    if old == new:
        raise ToolError("`old` and `new` are the same.", mend="Send the changed text as `new`.")
    text = decoded(data)
    if text.mark:
        old, new = old.removeprefix("\ufeff"), new.removeprefix("\ufeff")
    text.check_added(new)
    escapes = text.escapes(old.split("\n"))
    return text, unescaped(old, escapes), unescaped(new, escapes)


def _exact(
    text: str, old: str, most: int = MOST, *, overlapping: bool = True
) -> list[tuple[int, int]]:
    r"""Return start and end of each occurrence, with `\n` for any line break if there is none."""

    def places(text: str, old: str) -> list[tuple[int, int]]:
        starts = occurrences(text, old, most, overlapping=overlapping)
        return [(start, start + len(old)) for start in starts]

    found = places(text, old)
    if found or "\n" not in old or "\r" in old or "\r" not in text:
        return found
    if "\n" not in text:
        return places(text, old.replace("\n", "\r"))
    # Where each `\r\n` is once all are `\n`: so many characters more stand before it in the file.
    dropped = [found.start() - at for at, found in enumerate(re.finditer("\r\n", text))]
    return [
        (start + bisect_left(dropped, start), end + bisect_left(dropped, end))
        for start, end in places(text.replace("\r\n", "\n"), old)
    ]


def _spliced(text: str, places: Sequence[tuple[int, int]], old: str, new: str) -> str:
    pieces: list[str] = []
    at = 0
    for start, end in places:
        pieces += [text[at:start], _in_own_breaks(text, start, end, old, new)]
        at = end
    changed = "".join([*pieces, text[at:]])
    if changed == text:
        raise ToolError("The edit changes nothing.", mend="Send the changed text as `new`.")
    return changed


def _in_own_breaks(text: str, start: int, end: int, old: str, new: str) -> str:
    """Return `new` with the line breaks of what it replaces, or of the line that it stands in."""
    if "\r" in new or "\n" not in new:
        return new
    found = _breaks(text[start:end], lone="\n" not in text)
    lines, before = new.split("\n"), old.replace("\r\n", "\n").split("\n")
    needed = len(lines) - 1
    kept = min(len(found), needed, common(lines[::-1], before[::-1]))
    first = found[: len(found) - kept] or found[:1] or [_break_after(text, end)]
    ends = [first[min(at, len(first) - 1)] for at in range(needed - kept)]
    ends += found[len(found) - kept :]
    return "".join(f"{line}{end}" for line, end in zip(lines, [*ends, ""], strict=True))


def _breaks(text: str, *, lone: bool) -> list[str]:
    return re.findall("\r" if lone else "\r?\n", text)


def _break_after(text: str, at: int) -> str:
    following = re.compile("\r?\n").search(text, at)
    if following is not None:
        return following[0]
    if "\n" not in text:
        return "\r" if "\r" in text else "\n"
    return "\r\n" if 2 * text.count("\r\n") > text.count("\n") else "\n"


def _by_likeness(text: Text, old: str, new: str) -> Replaced:
    """Replace whole lines that were meant, though they are not written so."""
    lines = text.lines()
    whole = bool(new) and old.endswith("\n") != new.endswith("\n")
    if whole or not old.strip():
        raise _nowhere(lines, old)
    before, after = _split(old), _split(new) if new else [""] * (not old.endswith("\n"))
    found = find_block(lines, before)
    if not found.starts:
        raise _nowhere(lines, old)
    if len(found.starts) > 1:
        raise _several([start + 1 for start in found.starts], len(found.starts))
    start, end = found.starts[0], found.starts[0] + len(before)
    usual = usual_end(lines)
    block = rewritten(lines[start:end], _change(before, after), found.likeness, usual)
    changed = [*lines[:start], *block, *lines[end:]]
    open_end = bool(lines) and not lines[-1].end
    return Replaced(text.encoded(ended(changed, usual, open_end=open_end)), found.likeness)


def _split(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n")


def _change(before: Sequence[str], after: Sequence[str]) -> list[HunkLine]:
    """Return what stays, goes and comes on the way from one snippet to the other."""
    if len(before) * len(after) > _COMPARED:
        return [*(HunkLine("-", line) for line in before), *(HunkLine("+", line) for line in after)]
    change: list[HunkLine] = []
    compared = SequenceMatcher(None, before, after, autojunk=False)
    for tag, old_at, old_end, new_at, new_end in compared.get_opcodes():
        if tag == "equal":
            change += [HunkLine(" ", line) for line in before[old_at:old_end]]
        else:
            change += [HunkLine("-", line) for line in before[old_at:old_end]]
            change += [HunkLine("+", line) for line in after[new_at:new_end]]
    return change


def _nowhere(lines: Sequence[Line], old: str) -> ToolError:
    return ToolError(
        "`old` does not occur in the file; nothing was changed.",
        mend="Copy it exactly, indentation included. "
        + closest_region([line.body for line in lines], old),
    )


def _ambiguous(text: str, starts: Sequence[int]) -> ToolError:
    break_ = "\n" if "\n" in text else "\r"
    listed = [text.count(break_, 0, start) + 1 for start in starts[:_LISTED]]
    return _several(listed, len(starts))


def _several(lines: Sequence[int], times: int) -> ToolError:
    more = ", ..." if times > _LISTED else ""
    count = times if times < MOST else f"at least {MOST}"
    return ToolError(
        f"`old` occurs {count} times (lines {', '.join(map(str, lines[:_LISTED]))}{more}); "
        "nothing was changed.",
        mend="Add lines around it until it is unique, or say as `count` how many are to be "
        "replaced.",
    )
