"""Find where a block of lines stands in a file: exactly, else as it was evidently meant. Pure."""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from turnout.agent.tools.occurrences import occurrences
from turnout.agent.tools.texts import Line

__all__ = ["Found", "Likeness", "find_block", "fold", "indent_of"]

Likeness = Literal["exact", "blanks", "look-alikes", "indentation"]
"""What was not compared: nothing, blanks at line ends, and also the looks, and also the indent."""

_LOOKS: Final[Mapping[str, str]] = {
    "'": "\u2018\u2019\u201a\u201b\u2032\u02bc",
    '"': "\u201c\u201d\u201e\u201f\u2033",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
}
_WIDE: Final = range(0xFF01, 0xFF5F)
_ALIKE: Final[Mapping[int, str]] = {
    **{ord(alike): plain for plain, all_ in _LOOKS.items() for alike in all_},
    **{code: chr(code - 0xFEE0) for code in _WIDE},
    **{
        code: " "
        for code in (0xA0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)
        if unicodedata.category(chr(code)) == "Zs"
    },
}


@dataclass(frozen=True, slots=True)
class Found:
    """The lines at which a block may begin, counted from 0, in the best likeness that has any."""

    starts: tuple[int, ...]
    likeness: Likeness


def find_block(lines: Sequence[Line], wanted: Sequence[str]) -> Found:
    """Return where the lines `wanted` follow each other in a file."""
    blank = not any(line.strip() for line in wanted)
    for likeness, key in _KEYS.items():
        if blank and likeness == "look-alikes":
            break
        starts = _starts([key(line.body) for line in lines], [key(line) for line in wanted])
        if starts:
            return Found(tuple(starts), likeness)
    return Found((), "exact")


def fold(text: str) -> str:
    """Return `text` with plain characters for those that look like them, one for one."""
    return text if text.isascii() else text.translate(_ALIKE)


def indent_of(line: str) -> str:
    """Return the blanks that a line begins with."""
    return line[: len(line) - len(line.lstrip())]


def _starts(keys: Sequence[str], wanted: Sequence[str]) -> list[int]:
    text = "\n" + "".join(f"{key}\n" for key in keys)
    line, counted, starts = 0, 0, []
    for at in occurrences(text, "\n" + "".join(f"{key}\n" for key in wanted)):
        line += text.count("\n", counted, at)
        counted = at
        starts.append(line)
    return starts


_KEYS: Final[Mapping[Likeness, Callable[[str], str]]] = {
    "exact": str,
    "blanks": str.rstrip,
    "look-alikes": lambda line: fold(line).rstrip(),
    "indentation": lambda line: fold(line).strip(),
}
