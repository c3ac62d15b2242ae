"""Where a reply might have gone on in another way, and the reply that comes of it. Pure.

A small model that repeats wrong code is in doubt at one token of it. From there on it is given its
own second thought to go on with, until it is back at a line that it has said before: what follows
is taken from there.
"""

import ast
import io
import re
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Final

from turnout.agent.repair.grafting.source import first_line, parse_text
from turnout.core.inference import Alternative

__all__ = ["Fork", "forks"]

_FENCE: Final = re.compile(r"^[ \t]*```[^\n]*\n", re.MULTILINE)
_MOST: Final = 40
"""Forks of one reply."""
_MOST_OF_TOKEN: Final = 3
_STOPS: Final = 4
"""Lines at any of which a fork is back: as many as every API takes."""
_LEAST_STOP: Final = 6
"""Characters of a line that is told from others."""
_ALIKE: Final = 0.6
"""Likeness from which a line stands for one that was there before."""


@dataclass(frozen=True, slots=True)
class Fork:
    """A second thought about one token of a reply."""

    reply: str
    at: int
    """Characters of the reply that stay."""
    text: str
    """What follows them."""
    logprob: float

    @property
    def begun(self) -> str:
        """The reply that the model is to go on with."""
        return self.reply[: self.at] + self.text

    @property
    def stops(self) -> tuple[str, ...]:
        """Lines of the reply at which the model is back where it was."""
        found = (line for line in self._rest() if len(line.strip()) >= _LEAST_STOP)
        return tuple(f"\n{line}" for line in dict.fromkeys(found))[:_STOPS]

    def ended(self, told: str, *, cut: bool = False) -> str | None:
        """Return the whole reply, given what the model said from `begun` on.

        Some servers say once more what was begun. None for what was `cut` before the end of a line.
        """
        told = told.removeprefix(self.begun)
        if "```" in told:
            return self.begun + told.partition("```")[0] + "```"
        if cut and "\n" not in told:
            return None
        said = self.begun + (told.rpartition("\n")[0] if cut else told)
        lines = said.rstrip().split("\n")
        rest = self._rest()
        # Lines that the model has said anew are not to follow once more.
        anew = len(lines) - len(self.reply.split("\n")) + len(rest)
        skips = [anew, 0] if anew > 0 and _is_alike(lines[-anew:], rest[:anew]) else [0]
        ends = ["\n".join([*lines, *rest[skip:]]) for skip in skips]
        return next((end for end in ends if _code(end) is not None), ends[0])

    def _rest(self) -> Sequence[str]:
        """Return the lines after the statement, or the head of one, in which the fork is."""
        lines = self.reply.split("\n")
        at = self.reply.count("\n", 0, self.at)
        first, tree = _code(self.reply) or (0, None)
        ends = [at]
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.stmt):
                last = _head_end(node)
                if node.lineno <= at - first + 1 <= last:
                    ends.append(last + first - 1)
        return lines[max(ends) + 1 :]


def forks(reply: str, alternatives: Sequence[Alternative]) -> tuple[Fork, ...]:
    """Return the forks of a reply, the likeliest first: none in its comments and docstrings."""
    fence = _FENCE.search(reply)
    begin = fence.end() if fence else 0
    end = reply.find("```", begin)
    end = len(reply) if end < 0 else end
    idle = _idle(reply[begin:end], begin)
    found: list[Fork] = []
    for each in sorted(alternatives, key=lambda each: -each.logprob):
        inside = begin < each.at < end and not any(a <= each.at < b for a, b in idle)
        others = sum(fork.at == each.at for fork in found)
        if inside and others < _MOST_OF_TOKEN and _says_code(each):
            found.append(Fork(reply, each.at, each.text, each.logprob))
    return tuple(found[:_MOST])


def _says_code(each: Alternative) -> bool:
    """Whether an alternative is more than other blanks, quotation marks, a comment or an end."""
    plain, before = (text.replace("'", '"').strip() for text in (each.text, each.instead))
    return plain not in ("", before) and not plain.startswith(("#", "`", '"""'))


def _code(reply: str) -> tuple[int, ast.Module] | None:
    """Return the first line of the code in a reply, and the code; None where it does not parse."""
    fence = _FENCE.search(reply)
    begin = fence.end() if fence else 0
    tree = parse_text(reply[begin:].partition("```")[0])
    return None if tree is None else (reply.count("\n", 0, begin), tree)


def _head_end(node: ast.stmt) -> int:
    """Return the last line of a statement, or of its head where it has a body."""
    inner = ast.stmt | ast.excepthandler | ast.match_case
    bodies = [
        first_line(child) if isinstance(child, ast.stmt) else getattr(child, "lineno", node.lineno)
        for child in ast.iter_child_nodes(node)
        if isinstance(child, inner)
    ]
    return max(node.lineno, min(bodies) - 1) if bodies else node.end_lineno or node.lineno


def _is_alike(one: Sequence[str], other: Sequence[str]) -> bool:
    pairs = list(zip(one, other, strict=False))
    ratios = [SequenceMatcher(None, a.strip(), b.strip()).ratio() for a, b in pairs]
    return bool(pairs) and sum(ratios) / len(pairs) >= _ALIKE


def _idle(code: str, begin: int) -> list[tuple[int, int]]:
    """Return the spans of comments and docstrings; none where the code cannot be read."""
    starts = [0]
    for line in code.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(code).readline))
    except (tokenize.TokenError, SyntaxError):
        return []
    found = []
    blank = {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.NL}
    for before, token in pairwise(tokens):
        is_doc = token.type == tokenize.STRING and before.type in blank
        if is_doc or token.type == tokenize.COMMENT:
            places = (token.start, token.end)
            first, last = (begin + starts[row - 1] + column for row, column in places)
            found.append((first, last))
    return found
