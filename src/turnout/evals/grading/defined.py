"""Which tests a file defines, by its text: what nobody has run has no name yet."""

import ast
from collections.abc import Iterator, Sequence

__all__ = ["defined_tests"]

_NO_TEST = ("skip", "xfail", "fixture")
"""Parts of decorators of what need not be heard of."""


def defined_tests(text: str) -> tuple[str, ...]:
    """Return the tests as in node ids, behind the path: `TestCase::test_one`.

    Those that are plainly defined, at the top or in a class at the top that collects them. Nothing
    where the text cannot be read.
    """
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    found = [*_tests_in(module.body)]
    for node in module.body:
        if isinstance(node, ast.ClassDef) and _is_collected(node):
            found += [f"{node.name}::{name}" for name in _tests_in(node.body)]
    return tuple(dict.fromkeys(found))


def _tests_in(body: Sequence[ast.stmt]) -> Iterator[str]:
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if name.startswith("test") and not _left_out(node.decorator_list):
                    yield name


def _is_collected(node: ast.ClassDef) -> bool:
    bases = [ast.unparse(base) for base in node.bases]
    collected = node.name.startswith("Test") or any(base.endswith("TestCase") for base in bases)
    return collected and not _left_out(node.decorator_list)


def _left_out(decorators: Sequence[ast.expr]) -> bool:
    texts = [ast.unparse(each) for each in decorators]
    return any(part in text for text in texts for part in _NO_TEST)
