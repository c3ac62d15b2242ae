"""A definition from a reply, written the way the file around it is written."""

import ast
import io
import re
import tokenize
from dataclasses import dataclass

from turnout.agent.repair.grafting.source import (
    Definition,
    FunctionNode,
    Module,
    docstring_of,
    first_line,
)

__all__ = ["Span", "is_elided", "is_same", "rewritten", "written"]

_LEADING = re.compile(r"[ \t]*")


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes of a file and what takes their place."""

    start: int
    end: int
    text: str
    """With the line endings of the file."""


def rewritten(module: Module, old: Definition, code: str, new: ast.stmt) -> Span:
    """Return the edit that puts `new`, a statement of `code`, in the place of `old`.

    What a small model tends to drop is kept: decorators, `async` and the docstring, which it may
    have been shown in part only.
    """
    lines = written(code, new, old.indent, _unit(module, old))
    start = old.body
    if isinstance(new, FunctionNode | ast.ClassDef) and isinstance(
        old.node, FunctionNode | ast.ClassDef
    ):
        start = old.start if new.decorator_list else old.body
        _keep_docstring(module, old, code, new, lines)
        if isinstance(old.node, ast.AsyncFunctionDef) and isinstance(new, ast.FunctionDef):
            at = new.lineno - first_line(new)
            lines[at] = re.sub(r"^([ \t]*)def\b", r"\1async def", lines[at])
    lines[0] = lines[0].lstrip(" \t")
    return Span(start, old.end, module.newline.join(lines))


def is_same(old: ast.stmt, new: ast.stmt) -> bool:
    """Whether two definitions do the same but for comments, layout and what is kept anyway."""
    return _dump(old, new) == _dump(new, new)


def is_elided(new: ast.stmt) -> bool:
    """Whether a function is a placeholder: no statement but `pass` and `...`."""
    return isinstance(new, FunctionNode) and all(
        isinstance(line, ast.Pass)
        or (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))
        for line in new.body
    )


def _dump(node: ast.stmt, like: ast.stmt) -> str:
    """Return the tree as text, without what `like` lacks and the rewriting keeps."""
    if not isinstance(node, FunctionNode | ast.ClassDef):
        return ast.dump(node)
    body = node.body[1:] if docstring_of(node) else node.body
    keeps = isinstance(like, FunctionNode | ast.ClassDef) and not like.decorator_list
    heads = [] if keeps else [ast.dump(each) for each in node.decorator_list]
    if isinstance(node, ast.ClassDef):
        heads += [ast.dump(each) for each in (*node.bases, *node.keywords)]
    else:
        is_async = isinstance(node, ast.AsyncFunctionDef) and isinstance(like, ast.AsyncFunctionDef)
        returns = ast.dump(node.returns) if node.returns else ""
        heads += [ast.dump(node.args), returns, str(is_async)]
    return "\n".join([node.name, *heads, *(ast.dump(line) for line in body)])


def written(code: str, node: ast.stmt, indent: str, unit: str) -> list[str]:
    """Return the lines of `node`, moved to `indent`, with `unit` for a level."""
    first, last = first_line(node), node.end_lineno or node.lineno
    lines = code.split("\n")[first - 1 : last]
    lines[-1] = lines[-1].encode()[: node.end_col_offset].decode(errors="ignore")
    margin = len(_leading(lines[0]))
    own_unit = _own_unit(node, margin)
    fixed = {row - first for row in _string_rows(code) - _docstring_rows(node)}
    moved = []
    for row, line in enumerate(lines):
        if row in fixed:
            moved.append(line)
        elif not line.strip():
            moved.append("")
        else:
            width = max(0, len(_leading(line)) - margin)
            levels, rest = divmod(width, own_unit)
            moved.append(indent + unit * levels + " " * rest + line.lstrip(" \t"))
    return moved


def _leading(line: str) -> str:
    found = _LEADING.match(line)
    return found[0] if found else ""


def _own_unit(node: ast.stmt, margin: int) -> int:
    body = getattr(node, "body", None)
    if not body or body[0].lineno == node.lineno:
        return 4
    return max(1, int(body[0].col_offset) - margin)


def _unit(module: Module, old: Definition) -> str:
    """Return how the file indents one level: as this definition does, else as the first does."""
    for node in (old.node, *(each.node for each in module.definitions)):
        if isinstance(node, FunctionNode | ast.ClassDef) and node.body[0].lineno > node.lineno:
            outer = _leading(module.lines(node.lineno, node.lineno))
            inner = _leading(module.lines(node.body[0].lineno, node.body[0].lineno))
            if inner.startswith(outer) and inner != outer:
                return inner[len(outer) :]
    return "    "


def _string_rows(code: str) -> set[int]:
    """Return the lines that begin inside a string; moving them would change its value."""
    rows: set[int] = set()
    opened: list[int] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            kind = tokenize.tok_name[token.type]
            if kind == "STRING":
                rows.update(range(token.start[0] + 1, token.end[0] + 1))
            elif kind.endswith("STRING_START"):
                opened.append(token.start[0])
            elif kind.endswith("STRING_END") and opened:
                rows.update(range(opened.pop() + 1, token.end[0] + 1))
    except (tokenize.TokenError, SyntaxError):
        return rows
    return rows


def _docstring_rows(node: ast.stmt) -> set[int]:
    rows: set[int] = set()
    for each in ast.walk(node):
        if isinstance(each, FunctionNode | ast.ClassDef):
            text = docstring_of(each)
            if text is not None:
                rows.update(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    return rows


def _keep_docstring(
    module: Module,
    old: Definition,
    code: str,
    new: FunctionNode | ast.ClassDef,
    lines: list[str],
) -> None:
    """Put the docstring of `old`, where it has one of its own, into the lines of `new`."""
    if not isinstance(old.node, FunctionNode | ast.ClassDef):
        return
    text = docstring_of(old.node)
    if text is None or not _stands_alone(old.node, text):
        return
    whole = module.lines(text.lineno, text.end_lineno or text.lineno)
    kept = re.split(r"\r\n|\r|\n", whole.rstrip("\r\n"))
    first, start = new.body[0], first_line(new)
    own = docstring_of(new)
    if own is not None:
        if _stands_alone(new, own):
            lines[own.lineno - start : (own.end_lineno or own.lineno) - start + 1] = kept
        return
    at = first_line(first) - start
    line = code.split("\n")[first_line(first) - 1].encode()
    if not line[: first.col_offset].strip() or first.lineno != first_line(first):
        lines[at:at] = kept
        return
    rest = line[first.col_offset :].decode(errors="ignore").rstrip()
    header = lines[at].rstrip().removesuffix(rest)
    lines[at : at + 1] = [header.rstrip(), *kept, _leading(kept[0]) + rest]


def _stands_alone(node: FunctionNode | ast.ClassDef, text: ast.Expr) -> bool:
    follows = [line.lineno for line in node.body[1:2]]
    return text.lineno > node.lineno and follows != [text.end_lineno]
