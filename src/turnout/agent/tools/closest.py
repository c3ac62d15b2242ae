"""Find what a model may have meant by lines that a file does not hold."""

from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches

from turnout.agent.tools.texts import readable

__all__ = ["closest_region"]

_MOST_LINES = 2_000
_MOST_CHARS = 120
_SHOWN_LINES = 12
_SHOWN_CHARS = 1_200


def closest_region(lines: Sequence[str], wanted: str) -> str:
    """Return the lines most like `wanted`, with their number; empty where none is alike."""
    sought = [line.strip() for line in wanted.split("\n")]
    start = _by_equal_lines(lines, sought)
    if start is None:
        start = _by_longest_line(lines[:_MOST_LINES], sought)
    if start is None:
        return ""
    first, last = max(0, start), min(len(lines), start + min(len(sought), _SHOWN_LINES))
    region = "\n".join(line[:_SHOWN_CHARS] for line in lines[first:last])[:_SHOWN_CHARS]
    return f"The closest region, from line {first + 1}:\n{readable(region)}"


def _by_equal_lines(lines: Sequence[str], sought: Sequence[str]) -> int | None:
    places: dict[str, list[int]] = {}
    for at, line in enumerate(sought):
        if line:
            places.setdefault(line, []).append(at)
    votes: Counter[int] = Counter()
    for number, line in enumerate(lines):
        for at in places.get(line.strip(), [])[:3]:
            votes[number - at] += 1
    return min(votes, key=lambda start: (-votes[start], start)) if votes else None


def _by_longest_line(lines: Sequence[str], sought: Sequence[str]) -> int | None:
    longest = max(range(len(sought)), key=lambda at: len(sought[at]))
    stripped = [line.strip()[:_MOST_CHARS] for line in lines]
    close = get_close_matches(sought[longest][:_MOST_CHARS], stripped, n=1, cutoff=0.6)
    return stripped.index(close[0]) - longest if close else None
