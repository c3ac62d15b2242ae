"""Text of models, repositories and test runs, made harmless to look at.

The templates escape HTML; this is about characters that hide or reorder what is read, and about
text without an end.
"""

from typing import Final, NamedTuple

from turnout.core.text import visible

__all__ = ["Excerpt", "excerpt", "visible"]

_LINES: Final = 200
_WIDTH: Final = 500
_CHARS: Final = 20_000


class Excerpt(NamedTuple):
    """The beginning of a text, as it may be shown."""

    text: str
    left_out: int
    """Characters that are not in it."""


def excerpt(text: str, lines: int = _LINES, width: int = _WIDTH, chars: int = _CHARS) -> Excerpt:
    """Return the first lines of a text, each no wider than `width`, together at most `chars`.

    Nothing of the rest is looked at, so that a text may have any size.
    """
    kept: list[str] = []
    shown = place = 0
    while place < len(text) and len(kept) < lines and shown < chars:
        end = text.find("\n", place)
        end = len(text) if end < 0 else end
        line = text[place : min(end, place + width, place + chars - shown)]
        kept.append(line if place + len(line) == end else f"{line} …")
        shown += len(line) + (end < len(text))
        place = end + 1
    return Excerpt("\n".join(kept), len(text) - shown)
