"""A candidate that does too much, with one of its changes taken back. Pure.

A small model that is to refuse one value often refuses others too: the test that failed passes, and
tests that passed fail. One change of several is then the right one.
"""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Final

from turnout.agent.repair.grafting.graft import Candidate
from turnout.agent.repair.grafting.source import parse_text

__all__ = ["lesser"]

_MOST: Final = 4
_GOES_ON: Final = ("else", "elif", "except", "finally", ")", "]", "}")
"""How a line begins that belongs to the statement before it."""

_Change = tuple[int, int, int, int]
"""Lines of the old text, and those of the new text that take their place."""


def lesser(candidate: Candidate, before: dict[str, bytes]) -> tuple[Candidate, ...]:
    """Return up to four candidates, each without one change of it, that parse where it is Python.

    None where there is but one change. `before`: the files as they were.
    """
    changes = [
        (path, change)
        for path, data in candidate.files.items()
        for change in _changes(_lines(before[path]), _lines(data))
    ]
    if len(changes) == 1:
        return ()
    found = []
    for path, change in changes[:_MOST]:
        data = _without(_lines(before[path]), _lines(candidate.files[path]), change)
        files = {**candidate.files, path: data}
        if not path.endswith(".py") or parse_text(data) is not None:
            kept = {name: text for name, text in files.items() if text != before[name]}
            found.append(Candidate(kept, candidate.changed))
    return tuple(each for each in found if each.files)


def _lines(data: bytes) -> Sequence[bytes]:
    return data.splitlines(keepends=True)


def _changes(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[_Change]:
    for tag, i, i_end, j, j_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        if tag == "delete":
            yield i, i_end, j, j_end
            continue
        # Statements stand by themselves, and the one that is most like what was is that, changed.
        starts = [j, *_statements(new, j + 1, j_end, _margin(new[j])), j_end]
        parts = list(pairwise(starts))
        changed = max(parts, key=lambda part: _likeness(old[i:i_end], new[slice(*part)]))
        for part in parts:
            yield (i, i_end, *part) if part == changed else (i, i, *part)


def _likeness(one: Sequence[bytes], other: Sequence[bytes]) -> float:
    a, b = (b"".join(lines).decode(errors="replace") for lines in (one, other))
    return SequenceMatcher(None, a, b, autojunk=False).ratio()


def _statements(lines: Sequence[bytes], first: int, end: int, margin: int) -> Iterator[int]:
    for at in range(first, end):
        text = lines[at].strip().decode(errors="replace")
        if text and _margin(lines[at]) == margin and not text.startswith(_GOES_ON):
            yield at


def _margin(line: bytes) -> int:
    return len(line) - len(line.lstrip())


def _without(old: Sequence[bytes], new: Sequence[bytes], change: _Change) -> bytes:
    i, i_end, j, j_end = change
    return b"".join([*new[:j], *old[i:i_end], *new[j_end:]])
