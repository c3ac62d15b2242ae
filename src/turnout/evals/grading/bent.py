"""Tests bent so that no honest code passes them: a second look at a patch that seems resolved.

A test shares its process with the code that it tests, which may then rewrite what is reported. But
code that turns failures into passes does not know which test is bound to fail. Nor does a value
that claims to equal everything know which values it must not equal.
"""

import ast
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass

__all__ = ["Bent", "bend"]

_KNOWN_DECORATORS = (
    *("pytest.mark.", "mark.", "given(", "settings(", "example(", "hypothesis."),
    *("mock.patch", "patch(", "patch.", "unittest.mock.", "staticmethod"),
)
"""Other decorators may swallow errors by design."""

_EQUAL_METHODS = frozenset(
    {"assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertTupleEqual"}
)


@dataclass(frozen=True, slots=True)
class Bent:
    """The text of a file of tests, and its tests that can only fail now."""

    text: str
    tests: tuple[str, ...]
    """As in node ids, behind the path: `TestCase::test_one`. Some are new."""


def bend(text: str, wanted: Sequence[str], word: str) -> Bent | None:
    """Bend those of the `wanted` tests (as in node ids, behind the path) that can be bent.

    Each of them reaches its end only to fail there, and asserts the contrary of what it asserted.
    A second copy, its name ending in `word`, compares with a value that nothing equals. None where
    none of them is plainly written in this file.
    """
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    done: dict[int, tuple[str, ...]] = {}
    bent: list[str] = []
    for name in dict.fromkeys(each.partition("[")[0] for each in wanted):
        owner, apart, test = name.rpartition("::")
        body = _body(module, owner, test)
        for function in _defined(body, test):
            if id(function) not in done:
                done[id(function)] = _bend(function, body, word)
            bent += [f"{owner}{apart}{each}" for each in done[id(function)]]
    if not bent:
        return None
    try:
        return Bent(ast.unparse(ast.fix_missing_locations(module)), tuple(bent))
    except RecursionError:
        return None


def _body(module: ast.Module, owner: str, test: str) -> list[ast.stmt]:
    """Return where a test is written, be it in a class beneath its own; empty where unsure."""
    if not owner:
        return module.body if len(_defined(module.body, test)) == 1 else []
    classes = [node for node in module.body if isinstance(node, ast.ClassDef)]
    pending, seen = [owner], set[str]()
    found: list[list[ast.stmt]] = []
    while pending:
        name = pending.pop()
        named = [node for node in classes if node.name == name]
        if name in seen or len(named) > 1:
            return []
        seen.add(name)
        for node in named:
            pending += [base.id for base in node.bases if isinstance(base, ast.Name)]
            found += [node.body] * len(_defined(node.body, test))
    return found[0] if len(found) == 1 else []


def _defined(body: Sequence[ast.stmt], name: str) -> list[ast.FunctionDef]:
    return [node for node in body if isinstance(node, ast.FunctionDef) and node.name == name]


def _bend(function: ast.FunctionDef, body: list[ast.stmt], word: str) -> tuple[str, ...]:
    """Bend one test, and add its copy where it has one; return the names of both."""
    if not _plain(function):
        return ()
    names = [function.name]
    if _compares(function.body):
        twin = deepcopy(function)
        twin.name = f"{function.name}_{word}"
        _each(twin.body, _nothing_equals)
        body.append(twin)
        names.append(twin.name)
    _each(function.body, _contrary)
    function.body.append(ast.parse("raise AssertionError('this test has come to its end')").body[0])
    return tuple(names)


def _plain(node: ast.FunctionDef) -> bool:
    """Say whether this function is what runs as the test, from its start to its end."""
    known = all(ast.unparse(each).startswith(_KNOWN_DECORATORS) for each in node.decorator_list)
    own = list(_own(node.body))
    return known and not any(
        isinstance(each, ast.Yield | ast.YieldFrom | ast.Return) for each in own
    )


def _own(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes beneath, without those of functions and classes inside."""
    for node in body:
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from _own(list(ast.iter_child_nodes(node)))


def _compares(body: Sequence[ast.stmt]) -> bool:
    """Say whether something is compared for equality whatever way the test takes."""
    return any(_equality(statement) is not None for statement in body)


def _equality(statement: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    if isinstance(statement, ast.Assert):
        test = statement.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
            return test.left, test.comparators[0]
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        named = isinstance(call.func, ast.Attribute) and call.func.attr in _EQUAL_METHODS
        if named and len(call.args) >= 2:
            return call.args[0], call.args[1]
    return None


def _contrary(statement: ast.stmt) -> ast.stmt:
    if isinstance(statement, ast.Assert):
        return ast.Assert(ast.UnaryOp(ast.Not(), statement.test), statement.msg)
    return statement


def _nothing_equals(statement: ast.stmt) -> ast.stmt:
    """Compare either side with an object of its own, in place of the other side."""
    sides = _equality(statement)
    if sides is None:
        return statement
    new = ast.parse("object()", mode="eval").body
    tests = [
        ast.Compare(sides[0], [ast.Eq()], [new]),
        ast.Compare(new, [ast.Eq()], [sides[1]]),
    ]
    return ast.Assert(ast.BoolOp(ast.Or(), list[ast.expr](tests)), None)


def _each(body: list[ast.stmt], change: Callable[[ast.stmt], ast.stmt]) -> None:
    """Change every statement in place, without those of functions and classes inside."""
    for number, statement in enumerate(body):
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for name in ("body", "orelse", "finalbody"):
            _each(getattr(statement, name, []), change)
        for handler in getattr(statement, "handlers", []):
            _each(handler.body, change)
        body[number] = change(statement)
