"""Which names a piece of code uses, and which a module already has."""

import ast
import builtins
import sys
from collections.abc import Iterable, Iterator

__all__ = ["bound_names", "missing_imports", "used_names"]


def used_names(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Return the attributes that `nodes` read, and the names that are none of their own."""
    body = list(nodes)
    walked = [each for node in body for each in ast.walk(node)]
    names = {each.id for each in walked if isinstance(each, ast.Name)} - _own_names(body)
    return frozenset(names | {each.attr for each in walked if isinstance(each, ast.Attribute)})


def bound_names(tree: ast.Module) -> frozenset[str]:
    """Return the names that running the module gives it, those in branches included."""
    bound: set[str] = set()
    for node in _scope(tree):
        match node:
            case ast.alias():
                bound.add(_bound_by(node))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                bound.add(name)
            case ast.ClassDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                bound.add(name)
            case _:
                pass
    return frozenset(bound)


def _scope(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what is in the scope of `node`; functions and classes, but not what is in them."""
    inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, inner):
            yield from _scope(child)


def missing_imports(
    nodes: Iterable[ast.stmt], offered: Iterable[ast.stmt], bound: frozenset[str]
) -> tuple[str, ...]:
    """Return the import lines that `nodes` need in a module where `bound` is there.

    Those come first that the reply itself offers; a module of the standard library that is used
    by its name and imported by nobody is added too.
    """
    body = list(nodes)
    local = {
        _bound_by(each) for node in body for each in ast.walk(node) if isinstance(each, ast.alias)
    }
    here = bound | local | _own_names(body) | frozenset(dir(builtins))
    read = {each.id for node in body for each in ast.walk(node) if isinstance(each, ast.Name)}
    wanted = read - here
    lines: list[str] = []
    for statement in offered:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            taken = [a for a in statement.names if _bound_by(a) in wanted]
            wanted -= {_bound_by(alias) for alias in taken}
            lines += [_import_line(statement, taken)] if taken else []
    owners = {
        each.value.id
        for node in body
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name)
    }
    known = sorted(name for name in wanted & owners if name in sys.stdlib_module_names)
    return (*lines, *(f"import {name}" for name in known))


def _bound_by(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _import_line(statement: ast.Import | ast.ImportFrom, names: list[ast.alias]) -> str:
    if isinstance(statement, ast.Import):
        return ast.unparse(ast.Import(names))
    return ast.unparse(ast.ImportFrom(statement.module, names, statement.level))


def _own_names(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Return parameters, variables and definitions of the code itself."""
    own: set[str] = set()
    for node in nodes:
        for each in ast.walk(node):
            match each:
                case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                    own.add(name)
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    own.add(name)
                case ast.ClassDef(name=name) | ast.ExceptHandler(name=str(name)):
                    own.add(name)
                case _:
                    pass
    return frozenset(own)
