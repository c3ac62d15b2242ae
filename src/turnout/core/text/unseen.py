"""Characters that hide or reorder what is read, told by what Unicode says of them."""

import re
import unicodedata
from typing import Final

__all__ = ["is_unseen", "seen_only", "visible"]

_KINDS: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
"""Controls, formats, what means nothing or nothing in common, halves of pairs, other breaks."""

# `Default_Ignorable_Code_Point` of Unicode as far as the kinds leave any, and the blank of Braille.
_IGNORED: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U0001d173-\U0001d17a\U000e0100-\U000e01ef]"
)

_COLOURED: Final = "\ufe0f"
"""Asks for the picture of a sign that has one."""
_SIGNS: Final = frozenset({"Sm", "So"})
_MOST_KEPT: Final = 10_000


def is_unseen(character: str) -> bool:
    """Whether a character has no look of its own, or changes that of others.

    So are all controls, newline and tab among them.
    """
    return unicodedata.category(character) in _KINDS or _IGNORED.fullmatch(character) is not None


class _Shown(dict[int, int | str]):
    """How characters are shown, by their code; each is looked up once."""

    def __init__(self, *, escaped: bool) -> None:
        super().__init__()
        self._escaped = escaped

    def __missing__(self, code: int) -> int | str:
        character = chr(code)
        shown: int | str = code
        if character not in "\n\t" and is_unseen(character):
            shown = ascii(character)[1:-1] if self._escaped else ""
        if len(self) < _MOST_KEPT:
            self[code] = shown
        return shown


_SHOWN: Final = _Shown(escaped=True)
_LEFT: Final = _Shown(escaped=False)


def visible(text: str) -> str:
    """Return text with every character that could hide or reorder it written as an escape.

    Newline and tab stay, and after a sign the one selector that gives it its colours; what joins
    several signs to one is an escape.
    """
    if _COLOURED not in text:
        return text.translate(_SHOWN)
    first, *others = text.split(_COLOURED)
    parts, last = [first.translate(_SHOWN)], first
    for other in others:
        sign = bool(last) and unicodedata.category(last[-1]) in _SIGNS
        parts += [_COLOURED if sign else ascii(_COLOURED)[1:-1], other.translate(_SHOWN)]
        last = other
    return "".join(parts)


def seen_only(text: str) -> str:
    """Return text without the characters that nobody sees; newline and tab stay."""
    return text.translate(_LEFT)
