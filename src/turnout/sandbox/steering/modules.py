"""Python modules that steer the tests without being settings."""

import ast
import re
import sys
from collections.abc import Collection
from pathlib import PurePosixPath

from turnout.sandbox.testrun import TestPaths

__all__ = ["loads_plugins", "roots_of", "runs_code", "stands_in"]

_MODULE = re.compile(
    r"(?:(.*)/)?(?!__init__\.)([^/.]+)(?:\.(?:[^/]*\.)?(?:py|so)|/__init__\.(?:[^/]*\.)?(?:py|so))"
)
_NOT_TAKEN = frozenset({"test"})
"""A module of the standard library whose name every repository may use for itself."""
_OWN_PLUGINS = frozenset({"pytester"})
"""Plugins of pytest itself that steer no other test than the one that uses them."""


def stands_in(path: str, roots: Collection[str] | None = None) -> bool:
    """Say whether a file is a module named as one of the standard library.

    `roots`: the only folders in which this matters; any without them.
    """
    found = _MODULE.fullmatch(path)
    if found is None or (roots is not None and (found[1] or "") not in roots):
        return False
    return found[2] in sys.stdlib_module_names and found[2] not in _NOT_TAKEN


def roots_of(listing: Collection[str], tests: TestPaths) -> frozenset[str]:
    """Return the folders that pytest puts first on the path: those of tests or of their package."""
    roots = set()
    for path in listing:
        if path.endswith(".py") and tests.match(path):
            folder = PurePosixPath(path).parent
            while folder.name and f"{folder}/__init__.py" in listing:
                folder = folder.parent
            roots.add("" if folder == PurePosixPath() else str(folder))
    return frozenset(roots)


def runs_code(text: str) -> bool:
    """Say whether the `__init__.py` of a folder of tests holds more than a docstring."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    return not all(
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in body
    )


def loads_plugins(text: str) -> bool:
    """Say whether a test file has pytest load plugins, or hands it any."""
    if "PluginManager" in text or "pluginmanager" in text:
        return True
    if "pytest_plugins" not in text:
        return False
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    return not any(_own_plugins(node) for node in body) or text.count("pytest_plugins") > 1


def _own_plugins(node: ast.stmt) -> bool:
    if not isinstance(node, ast.Assign) or ast.unparse(node.targets[0]) != "pytest_plugins":
        return False
    value = node.value
    names = value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
    return all(isinstance(name, ast.Constant) and name.value in _OWN_PLUGINS for name in names)
