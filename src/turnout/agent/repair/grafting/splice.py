"""New bytes of one file: definitions replaced, helpers and imports added, nothing else touched."""

import ast
from collections.abc import Sequence

from turnout.agent.repair.grafting.matching import Match, named
from turnout.agent.repair.grafting.names import bound_names, missing_imports, used_names
from turnout.agent.repair.grafting.reply import Block
from turnout.agent.repair.grafting.rewrite import Span, rewritten, written
from turnout.agent.repair.grafting.source import FunctionNode, Module, first_line

__all__ = ["spliced"]


def spliced(module: Module, matches: Sequence[Match]) -> bytes | None:
    """Return the file with `matches` in place; None where its encoding cannot hold the text."""
    spans: list[Span] = []
    placed: list[ast.stmt] = []
    for match in matches:
        span = rewritten(module, match.old, match.block.code, match.new)
        if all(span.end <= other.start or other.end <= span.start for other in spans):
            spans.append(span)
            placed.append(match.new)
    blocks = list({id(match.block): match.block for match in matches}.values())
    helpers = _helpers(module, placed, blocks)
    spans += _helper_spans(module, min(span.start for span in spans), helpers)
    offered = [node for block in blocks for node in block.tree.body]
    code = [*placed, *(helper for helper, _ in helpers)]
    imports = missing_imports(code, offered, bound_names(module.tree))
    constants = [
        written(block.code, node, "", "    ")
        for node, block in helpers
        if not isinstance(node, FunctionNode | ast.ClassDef)
    ]
    spans += _head_spans(module, [*imports, *constants])
    return _applied(module, spans)


def _applied(module: Module, spans: Sequence[Span]) -> bytes | None:
    data = module.data
    try:
        for span in sorted(spans, key=lambda each: (each.start, each.end), reverse=True):
            data = data[: span.start] + span.text.encode(module.encoding) + data[span.end :]
    except UnicodeEncodeError:
        return None
    return data


def _helpers(
    module: Module, placed: Sequence[ast.stmt], blocks: Sequence[Block]
) -> list[tuple[ast.stmt, Block]]:
    """Return the definitions of the reply that the file lacks and the new code uses."""
    bound = bound_names(module.tree)
    fresh = [
        (node, block)
        for block in blocks
        for node in block.tree.body
        if not bound.intersection(named(node))
    ]
    taken: list[tuple[ast.stmt, Block]] = []
    while True:
        used = used_names([*placed, *(node for node, _ in taken)])
        more = [each for each in fresh if each not in taken and used.intersection(named(each[0]))]
        if not more:
            return taken
        taken += more


def _helper_spans(
    module: Module, start: int, helpers: Sequence[tuple[ast.stmt, Block]]
) -> list[Span]:
    """Return functions and classes as one insertion behind the statement at `start`."""
    texts = [
        written(block.code, node, "", "    ")
        for node, block in helpers
        if isinstance(node, FunctionNode | ast.ClassDef)
    ]
    if not texts:
        return []
    ends = [module.line_end(node.end_lineno or node.lineno) for node in module.tree.body]
    at = min(end for end in ends if end >= start)
    gap = ["", "", ""]
    lines = [line for text in texts for line in (*gap, *text)]
    return [Span(at, at, module.newline.join(lines))]


def _head_spans(module: Module, lines: Sequence[str | list[str]]) -> list[Span]:
    """Return `lines` as one insertion behind the imports, or before the first statement."""
    if not lines:
        return []
    flat = [row for line in lines for row in ([line] if isinstance(line, str) else line)]
    body = module.tree.body
    behind = [
        node
        for index, node in enumerate(body)
        if isinstance(node, ast.Import | ast.ImportFrom)
        or (index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ]
    if behind:
        at = module.line_end(behind[-1].end_lineno or behind[-1].lineno)
        return [Span(at, at, "".join(module.newline + line for line in flat))]
    at = module.line_starts[first_line(body[0]) - 1]
    return [Span(at, at, "".join(line + module.newline for line in (*flat, "", "")))]
