"""On which line of a policy's TOML something stands, for the people who wrote it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["Line", "around", "line_of", "line_of_error"]

_SAID: Final = re.compile(r"at line (\d{1,7})\b", re.ASCII)
_END: Final = "at end of document"
_NAMED: Final = re.compile(r"`([^`]{1,500})`")
_PART: Final = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_PATH: Final = rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*"
_TABLE: Final = re.compile(rf"[ \t]*\[\[?[ \t]*({_PATH})[ \t]*\]")
_KEY: Final = re.compile(rf"[ \t]*({_PATH})[ \t]*=")
_STEP: Final = re.compile(rf"({_PART})|\[\d+\]")
_BEFORE: Final = 2
"""Lines that are shown on either side of the one that is wrong."""
_WIDEST: Final = 200
_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """A line as it is shown beside what is wrong with it."""

    number: int
    """From 1."""
    text: str
    wrong: bool


def line_of_error(text: str, said: str) -> int:
    """Return the number of the line that an error is about, from 1; 0 where that is not known.

    Errors name a place of the text, or the key.
    """
    if found := _SAID.search(said):
        return min(int(found[1]), text.count("\n") + 1)
    if _END in said:
        return text.rstrip().count("\n") + 1
    named = _NAMED.search(said)
    return line_of(text, named[1]) if named else 0


def line_of(text: str, key: str) -> int:
    """Return the number of the line that sets a key, or the nearest table it is in; 0 for none.

    A key is dotted. Where it begins with the name of a table around the text, that is left out.
    """
    path = _steps(key)
    lines = list(_paths(text))
    for wanted in (path, path[1:], path[2:]):
        exact = next((number for number, found in lines if found == wanted), 0)
        if exact and wanted:
            return exact
    for wanted in (path, path[1:], path[2:]):
        within = [(len(found), number) for number, found in lines if found == wanted[: len(found)]]
        if within:
            return max(within, key=lambda one: (one[0], -one[1]))[1]
    return 0


def around(text: str, number: int) -> Sequence[Line]:
    """Return a line with those beside it; none for 0."""
    if number < 1:
        return ()
    first = max(1, number - _BEFORE)
    shown = text.split("\n")[first - 1 : number + _BEFORE]
    return [Line(at, one[:_WIDEST], at == number) for at, one in enumerate(shown, first)]


def _paths(text: str) -> Iterator[tuple[int, _Path]]:
    """Yield what each line sets, as far as that can be seen without reading TOML."""
    table: _Path = ()
    for number, line in enumerate(text.split("\n"), 1):
        if found := _TABLE.match(line):
            table = _steps(found[1])
            yield number, table
        elif found := _KEY.match(line):
            yield number, (*table, *_steps(found[1]))


def _steps(path: str) -> _Path:
    return tuple(found[1].strip("\"'") for found in _STEP.finditer(path) if found[1])
