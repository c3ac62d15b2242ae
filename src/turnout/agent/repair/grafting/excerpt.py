"""Some lines of a definition that is too long to be written anew, and a reply in their place. Pure.

The lines are whole statements, so that a reply to them parses by itself.
"""

import ast
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from turnout.agent.repair.grafting.reply import Block
from turnout.agent.repair.grafting.source import Definition, FunctionNode, Module, first_line

__all__ = ["Region", "regions", "replaced"]

_MOST_LINES: Final = 100
"""Lines of a reply that are compared with the file; a longer one replaces all."""
_COMPARED: Final = 100
"""Characters of a line that are compared."""
_UNLIKE: Final = 0.75
"""Cost of a line of the reply, on average, from which it is like none."""


@dataclass(frozen=True, slots=True)
class Region:
    """Lines of a file, counted from 1, both included."""

    first: int
    last: int


def regions(
    module: Module, each: Definition, wanted: Iterable[int], limit: int, most: int
) -> tuple[Region, ...]:
    """Return up to `most` regions of at most about `limit` bytes, one around each `wanted` line.

    A line that an earlier region holds makes none; without any line it is the start.
    """
    found: list[Region] = []
    for line in wanted:
        if len(found) == most:
            break
        if not any(region.first <= line <= region.last for region in found):
            region = _around(module, each, line, limit)
            found += [] if region is None else [region]
    if not found:
        start = _around(module, each, _body_line(each), limit)
        found += [] if start is None else [start]
    return tuple(found)


def replaced(module: Module, region: Region, name: str, block: Block) -> bytes | None:
    """Return the file with the code of `block` in place of the lines of `region`.

    A block that is like a part of the region takes the place of that part only. None where the
    encoding of the file cannot hold the text.
    """
    old = module.lines(region.first, region.last).splitlines()
    new = _code(block, name).splitlines()
    start, end = _likest([line.strip() for line in old], [line.strip() for line in new])
    margin, indent = _leading(new[0]), _leading(old[min(start, len(old) - 1)])
    lines = [*old[:start], *(_moved(line, margin, indent) for line in new), *old[end:]]
    starts = (*module.line_starts, len(module.data))
    head, rest = starts[region.first - 1], module.line_end(region.last)
    try:
        text = module.newline.join(lines).encode(module.encoding)
    except UnicodeEncodeError:
        return None
    return module.data[:head] + text + module.data[rest:]


def _likest(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """Return where in `old` the lines are that `new` is most like; all of it if like none.

    The cheapest way to make `new` of a part of `old`: lines left out or added cost 1 each, and a
    changed one the more the less it is like before.
    """
    if len(new) > _MOST_LINES:
        return 0, len(old)
    row = [(0.0, at) for at in range(len(old) + 1)]
    for line in new:
        above, row = row, [(row[0][0] + 1, 0)]
        for at, before in enumerate(old, start=1):
            changed = above[at - 1][0] + 2 * (1 - _likeness(before, line))
            row.append(
                min(
                    (changed, above[at - 1][1]),
                    (above[at][0] + 1, above[at][1]),
                    (row[at - 1][0] + 1, row[at - 1][1]),
                )
            )
    cost, start, end = min((cost, start, end) for end, (cost, start) in enumerate(row))
    return (start, end) if end > start and cost < _UNLIKE * len(new) else (0, len(old))


def _likeness(one: str, other: str) -> float:
    if one == other:
        return 1.0
    return SequenceMatcher(None, one[:_COMPARED], other[:_COMPARED], autojunk=False).ratio()


def _code(block: Block, name: str) -> str:
    """Return the code of a block; of one that is wrapped into the definition, what is in it."""
    code = block.code.strip("\n")
    outer = block.tree.body[0] if len(block.tree.body) == 1 else None
    if not isinstance(outer, FunctionNode) or outer.name != name.rpartition(".")[2]:
        return code
    lines = block.code.split("\n")[first_line(outer.body[0]) - 1 : outer.end_lineno]
    return textwrap.dedent("\n".join(lines))


def _moved(line: str, margin: str, indent: str) -> str:
    if not line.strip():
        return ""
    own = _leading(line)
    return indent + own[len(margin) :] + line[len(own) :] if own.startswith(margin) else line


def _leading(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _around(module: Module, each: Definition, line: int, limit: int) -> Region | None:
    """Return the largest run of statements around a line that is within `limit`."""
    chain = _chain(module, each.node, line)
    if not chain:
        return None
    fitting = [link for link in chain if _size(module, _span(link[0][link[1]])) <= limit]
    body, index = fitting[0] if fitting else chain[-1]
    first, last = index, index
    while True:
        wider = [(first - 1, last), (first, last + 1)]
        wider = [
            (a, b)
            for a, b in wider
            if a >= 0 and b < len(body) and _size(module, _joined(body[a : b + 1])) <= limit
        ]
        if not wider:
            return _joined(body[first : last + 1])
        # The shorter side first, so that the line stays in the middle.
        first, last = min(wider, key=lambda pair: abs((index - pair[0]) - (pair[1] - index)))


def _chain(module: Module, node: ast.AST, line: int) -> list[tuple[Sequence[ast.stmt], int]]:
    """Return the statement lists around a line with its place in each, outermost first."""
    found: list[tuple[Sequence[ast.stmt], int]] = []
    inside: ast.AST | None = node
    while inside is not None:
        bodies = _bodies(inside)
        inside = None
        for body in bodies:
            for index, each in enumerate(body):
                region = _span(each)
                if region.first <= line <= region.last:
                    found += [] if _is_elif(module, each) else [(body, index)]
                    inside = each
    return found


def _bodies(node: ast.AST) -> list[Sequence[ast.stmt]]:
    fields = (getattr(node, name, []) for name in ("body", "orelse", "finalbody"))
    inner = [*getattr(node, "handlers", []), *getattr(node, "cases", [])]
    lists = [*fields, *(each.body for each in inner)]
    return [body for body in lists if isinstance(body, list) and body]


def _is_elif(module: Module, node: ast.stmt) -> bool:
    """Whether a statement is a part of the one before it, and no statement by itself."""
    return (
        isinstance(node, ast.If) and module.lines(node.lineno, node.lineno).lstrip()[:4] == "elif"
    )


def _span(node: ast.stmt) -> Region:
    return Region(first_line(node), node.end_lineno or node.lineno)


def _joined(body: Sequence[ast.stmt]) -> Region:
    return Region(_span(body[0]).first, _span(body[-1]).last)


def _size(module: Module, region: Region) -> int:
    starts = (*module.line_starts, len(module.data))
    return starts[region.last] - starts[region.first - 1]


def _body_line(each: Definition) -> int:
    node = each.node
    return first_line(node.body[-1]) if isinstance(node, FunctionNode | ast.ClassDef) else 0
