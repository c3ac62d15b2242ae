"""How much of an output a model reads, and in what form."""

import re
from dataclasses import dataclass

__all__ = ["Capped", "cap", "failing", "output_name", "printed"]

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_LONGEST_MARK = 120
_FAILING = re.compile(
    r"^(?:(?:FAILED|ERROR) (?=\S*(?:::|/|\.py))|(?:FAIL|ERROR): |[ \t]*--- FAIL: )(\S{1,200})",
    re.MULTILINE,
)
_MOST_FAILING = 1_000


@dataclass(frozen=True, slots=True)
class Capped:
    """A text that fits."""

    text: str
    elided: int
    """Characters left out."""


def output_name(number: int) -> str:
    """Return what `read_file` knows the whole output of a run's result `number` by."""
    return f"output:{number}"


def cap(text: str, limit: int, name: str = "") -> Capped:
    """Keep the head and, three times as much, the tail: programs print what matters last.

    `name`: what all of it can be read by. The result has at most `limit` characters, the line that
    states what is left out included.
    """
    if len(text) <= limit:
        return Capped(text, 0)
    room = max(0, limit - _LONGEST_MARK)
    head = room // 4
    tail = room - head
    elided = len(text) - room
    whole = f"; read_file shows all of it as `{name}`" if name else ""
    mark = f"\n[... {elided} characters left out{whole} ...]\n"
    return Capped(f"{text[:head]}{mark}{text[len(text) - tail :]}"[:limit], elided)


def failing(text: str) -> tuple[str, ...]:
    """Return the first names of failing tests that an output of pytest, unittest or Go states."""
    names: list[str] = []
    room = _MOST_FAILING
    for name in dict.fromkeys(found[1] for found in _FAILING.finditer(text)):
        room -= len(name) + 2
        if room < 0:
            break
        names.append(name)
    return tuple(names)


def printed(data: bytes) -> str:
    """Return what a program printed as text, without terminal escapes."""
    return _ESCAPES.sub("", data.decode(errors="replace")).replace("\r\n", "\n")
