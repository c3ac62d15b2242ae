"""Python source as bytes, with an index of the definitions in it."""

import ast
import io
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = [
    "MAX_SOURCE_BYTES",
    "Definition",
    "FunctionNode",
    "Module",
    "SymbolKind",
    "docstring_of",
    "first_line",
    "parse_module",
    "parse_text",
]

MAX_SOURCE_BYTES = 262_144
"""Larger files are not parsed: the repository is hostile."""

_MAX_DEPTH = 250

SymbolKind = Literal["function", "class", "assignment"]

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

_DefinitionNode = FunctionNode | ast.ClassDef | ast.Assign | ast.AnnAssign


@dataclass(frozen=True, slots=True)
class Definition:
    """A function, method, class or assignment of a module."""

    name: str
    """Dotted, as `Outer.method` or `outer.inner`."""
    kind: SymbolKind
    node: _DefinitionNode
    start: int
    """Byte offset of its first decorator, or of itself where it has none."""
    body: int
    """Byte offset of `def`, `class` or the target: after the decorators."""
    end: int
    """Byte offset behind its last character."""
    indent: str
    """White space before it on its line."""

    @property
    def last_name(self) -> str:
        """The name without what it is nested in."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class Module:
    """One parsed file; offsets count bytes of `data`."""

    path: str
    data: bytes
    encoding: str
    """Codec by which new text becomes bytes; never one that writes a byte-order mark."""
    tree: ast.Module
    line_starts: tuple[int, ...]
    definitions: tuple[Definition, ...]

    @property
    def newline(self) -> str:
        """The line ending of the first line."""
        first = self.data.splitlines(keepends=True)[:1]
        ends = ("\r\n", "\n", "\r")
        return next((end for end in ends if first and first[0].endswith(end.encode())), "\n")

    def text(self, start: int, end: int) -> str:
        """Return the bytes from `start` to `end` as text."""
        return self.data[start:end].decode(self.encoding)

    def lines(self, first: int, last: int) -> str:
        """Return whole lines as text, counted from 1, both included."""
        starts = (*self.line_starts, len(self.data))
        return self.text(starts[first - 1], starts[min(last, len(starts) - 1)])

    def line_end(self, line: int) -> int:
        """Return the byte offset behind the last character of a line, before its ending."""
        start, stop = (*self.line_starts, len(self.data))[line - 1 : line + 1]
        return start + len(self.data[start:stop].rstrip(b"\r\n"))

    def offset(self, line: int, column: int) -> int:
        """Return the byte offset of a position as `ast` gives it: UTF-8 bytes into a line."""
        start = self.line_starts[line - 1]
        if self.encoding == "utf-8":
            return start + column
        before = self.lines(line, line).encode()[:column].decode(errors="ignore")
        return start + len(before.encode(self.encoding))


def parse_text(text: str | bytes, path: str = "<source>") -> ast.Module | None:
    """Return the syntax tree, or None for what is no Python or too deep to work on."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text, path)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return None if _is_deep(tree) else tree


def parse_module(path: str, data: bytes) -> Module | None:
    """Return `data` with its definitions, or None where it cannot be edited byte by byte."""
    if len(data) > MAX_SOURCE_BYTES:
        return None
    encoding = _encoding(data)
    tree = parse_text(data, path)
    if encoding is None or tree is None:
        return None
    bom = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    starts, at = [bom], 0
    for line in data.splitlines(keepends=True):
        at += len(line)
        starts.append(at)
    module = Module(path, data, encoding, tree, tuple(starts), ())
    found = tuple(_definition(module, name, node) for name, node in _walk(tree.body))
    return Module(path, data, encoding, tree, tuple(starts), found)


def docstring_of(node: FunctionNode | ast.ClassDef) -> ast.Expr | None:
    """Return the statement that is the docstring of `node`."""
    first = node.body[0]
    is_text = (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )
    return first if is_text and isinstance(first, ast.Expr) else None


def first_line(node: ast.stmt) -> int:
    """Return the line on which a statement begins, its decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def _is_deep(tree: ast.Module) -> bool:
    """Whether functions that call themselves for each level could exhaust the stack."""
    level: list[ast.AST] = [tree]
    for _ in range(_MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return False
    return True


def _encoding(data: bytes) -> str | None:
    try:
        name, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(name)
    except (SyntaxError, UnicodeError, LookupError):
        return None
    if name in {"utf-8", "utf-8-sig"}:
        return "utf-8"
    return name if len(text) == len(data) else None


def _walk(
    body: Sequence[ast.stmt], inside: str = "", *, local: bool = False
) -> Iterator[tuple[str, _DefinitionNode]]:
    """Yield every definition at the top, in classes, functions and branches; no local variable."""
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield f"{inside}{node.name}", node
                in_function = not isinstance(node, ast.ClassDef)
                yield from _walk(node.body, f"{inside}{node.name}.", local=in_function)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if not local:
                    yield f"{inside}{name}", node
            case _:
                yield from _walk(_branches(node), inside, local=local)


def _branches(node: ast.stmt) -> list[ast.stmt]:
    match node:
        case ast.If() | ast.For() | ast.AsyncFor() | ast.While():
            return [*node.body, *node.orelse]
        case ast.Try():
            handled = [line for handler in node.handlers for line in handler.body]
            return [*node.body, *handled, *node.orelse, *node.finalbody]
        case ast.With() | ast.AsyncWith():
            return node.body
        case _:
            return []


def _definition(module: Module, name: str, node: _DefinitionNode) -> Definition:
    kind: SymbolKind = "assignment"
    decorators: list[ast.expr] = []
    if isinstance(node, FunctionNode | ast.ClassDef):
        kind = "class" if isinstance(node, ast.ClassDef) else "function"
        decorators = node.decorator_list
    body = module.offset(node.lineno, node.col_offset)
    start = body
    if decorators:
        first = module.offset(decorators[0].lineno, decorators[0].col_offset)
        start = module.data.rindex(b"@", 0, first)
    indent = module.text(module.line_starts[node.lineno - 1], body)
    end = module.offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
    return Definition(name, kind, node, start, body, end, indent if not indent.strip() else "")
