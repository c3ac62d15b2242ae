"""How much of an output a model reads, and in what form."""

import re
from dataclasses import dataclass

__all__ = ["Capped", "cap", "printed"]

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_LONGEST_MARK = 60


@dataclass(frozen=True, slots=True)
class Capped:
    """A text that fits."""

    text: str
    elided: int
    """Characters left out."""


def cap(text: str, limit: int) -> Capped:
    """Keep the head and, three times as much, the tail: programs print what matters last.

    The result has at most `limit` characters, the line that states what is left out included.
    """
    if len(text) <= limit:
        return Capped(text, 0)
    room = max(0, limit - _LONGEST_MARK)
    head = room // 4
    tail = room - head
    elided = len(text) - room
    mark = f"\n[... {elided} characters left out ...]\n"
    return Capped(f"{text[:head]}{mark}{text[len(text) - tail :]}"[:limit], elided)


def printed(data: bytes) -> str:
    """Return what a program printed as text, without terminal escapes."""
    return _ESCAPES.sub("", data.decode(errors="replace")).replace("\r\n", "\n")
