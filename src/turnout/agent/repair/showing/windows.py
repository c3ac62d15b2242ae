"""Parts of a text around the lines in question, cut to size. Pure."""

from collections.abc import Sequence
from typing import Final

__all__ = ["window"]

_GAP: Final = "[...]"
_MOST_LINE: Final = 400
"""Characters of one line that count; a longer one is not shown."""


def window(lines: Sequence[str], wanted: Sequence[int], limit: int) -> str:
    """Return what lies around the `wanted` lines (from 1, most wanted first) within `limit`.

    Each wanted line gets as many neighbours as there is room for, in turns; without one the text
    is shown from its start. What is left out is marked by a line `[...]`.
    """
    count = len(lines)
    starts = [number for number in dict.fromkeys(wanted) if 1 <= number <= count] or [1]
    shown: set[int] = set()
    left = limit
    for distance in range(count):
        around = [
            n for start in starts for n in dict.fromkeys((start - distance, start + distance))
        ]
        fresh = [n for n in dict.fromkeys(around) if 1 <= n <= count and n not in shown]
        for number in fresh:
            size = len(lines[number - 1]) + 1
            if size > _MOST_LINE:
                continue
            if size > left:
                return _joined(lines, shown)
            shown.add(number)
            left -= size
        if len(shown) == count:
            break
    return _joined(lines, shown)


def _joined(lines: Sequence[str], shown: set[int]) -> str:
    kept: list[str] = []
    before = 0
    for number in sorted(shown):
        if number != before + 1:
            kept.append(_GAP)
        kept.append(lines[number - 1])
        before = number
    if before < len(lines):
        kept.append(_GAP)
    return "\n".join(kept)
