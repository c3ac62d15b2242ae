"""How large a change is, in lines of code."""

import io
import re
import tokenize
from collections.abc import Iterator
from typing import Final

__all__ = ["bucket", "changed_lines", "code_lines"]

_HUNK: Final = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_LAYOUT: Final = frozenset(
    {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENCODING,
        tokenize.ENDMARKER,
    }
)


def code_lines(source: str) -> frozenset[int]:
    """Return the lines, counted from 1, that hold code: no blank ones, comments or docstrings.

    Where it is no Python that this interpreter reads, only blank lines and comments are left out.
    """
    try:
        return frozenset(_code(source))
    except (tokenize.TokenError, SyntaxError, ValueError):
        lines = enumerate(source.split("\n"), start=1)
        return frozenset(n for n, line in lines if line.strip() and line.lstrip()[0] != "#")


def changed_lines(diff: str, old: str, new: str) -> int:
    """Count the lines of code that a diff without context changes in one file.

    Of each place the larger side counts: what is replaced is counted once.
    """
    before, after = code_lines(old), code_lines(new)
    return sum(
        max(_within(before, found[1], found[2]), _within(after, found[3], found[4]))
        for found in _HUNK.finditer(diff)
    )


def bucket(lines: int) -> str:
    """Return the class of a size: `1`, `2-5`, `6-20` or `>20`."""
    if lines <= 1:
        return "1"
    if lines <= 5:
        return "2-5"
    return "6-20" if lines <= 20 else ">20"


def _code(source: str) -> Iterator[int]:
    statement: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in _LAYOUT:
            continue
        if token.type != tokenize.NEWLINE:
            statement.append(token)
            continue
        if any(each.type != tokenize.STRING for each in statement):
            for each in statement:
                yield from range(each.start[0], each.end[0] + 1)
        statement.clear()


def _within(lines: frozenset[int], start: str, count: str | None) -> int:
    first = int(start)
    return sum(n in lines for n in range(first, first + int(count or "1")))
