"""Text of strangers, such as a patch, made into text that only says what it shows."""

import re
from typing import Final

__all__ = ["plain"]

_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Control characters but newline and tab, what turns text round or has no width, and no text."""


def plain(text: str) -> str:
    """Return text with each character that would hide or reorder it written as an escape."""
    return _HIDDEN.sub(lambda found: ascii(found.group())[1:-1], text)
