"""Text of models, repositories and test runs, made harmless to look at.

The templates escape HTML; this is about characters that hide or reorder what is read, and about
text without an end.
"""

import re
from typing import Final, NamedTuple

__all__ = ["Excerpt", "excerpt", "visible"]

_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Control characters but newline and tab, what turns the direction of writing, what has no width,
and surrogates, which no page can hold."""

_LINES: Final = 200
_WIDTH: Final = 500
_CHARS: Final = 20_000


class Excerpt(NamedTuple):
    """The beginning of a text, as it may be shown."""

    text: str
    left_out: int
    """Characters that are not in it."""


def visible(text: str) -> str:
    """Return text with every character that could hide or reorder it written as an escape."""
    return _UNSEEN.sub(lambda found: ascii(found.group())[1:-1], text)


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
