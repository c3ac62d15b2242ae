"""What the tests say, cut to what a small model can hold. Pure."""

import re
from collections.abc import Sequence

__all__ = ["shown_errors", "shown_output"]

_FAILURES = (" FAILURES ", " ERRORS ")
_SUMMARIES = (" warnings summary", " short test summary info ")
_FENCE = re.compile(r"`{3,}")

_TOLD = re.compile(r"^(?:>|E(?:\s|$)|[^\s:]{1,300}:\d{1,7}: |_{3,} .{1,300} _{3,}$)")
"""Lines of pytest that are no code around a failure: a failing line, an error, a place, a test."""

_MOST_LINE = 300


def shown_output(output: str, limit: int) -> str:
    """Return the failures of a test output: no banners, the middle left out beyond `limit`."""
    return _cut("\n".join(_failures(output)), limit)


def shown_errors(output: str, limit: int) -> str:
    """Return the failing lines, errors and places of pytest's output, without the code around them.

    Of an output that has none of these the failures are returned as they are.
    """
    lines = _failures(output)
    told = [line[:_MOST_LINE] for line in lines if _TOLD.match(line)]
    has_errors = any(line.startswith("E") for line in told)
    return _cut("\n".join(told if has_errors else lines), limit)


def _failures(output: str) -> Sequence[str]:
    lines = output.split("\n")
    banners = [index for index, line in enumerate(lines) if _is_banner(line)]
    first = next((i for i in banners if lines[i].strip("=") in _FAILURES), -1)
    last = len(lines)
    if first >= 0:
        ends = (i for i in banners if i > first and lines[i].strip("=").startswith(_SUMMARIES))
        last = next(ends, last)
    return [line for line in lines[first + 1 : last] if not _is_banner(line)]


def _is_banner(line: str) -> bool:
    return line.startswith("=") and line.endswith("=")


def _cut(text: str, limit: int) -> str:
    text = _FENCE.sub("'''", text.strip())
    if len(text) <= limit:
        return text
    head, tail = text[: limit * 2 // 3], text[-(limit // 3) :]
    return f"{head.rpartition(chr(10))[0]}\n[...]\n{tail.partition(chr(10))[2]}"
