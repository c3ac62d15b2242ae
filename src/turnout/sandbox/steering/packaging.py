"""What in the description of a package steers the tests that run with the package installed.

Plugins of pytest are declared there, and programs of a build can write any file.
"""

import ast
import json
from collections.abc import Iterator

from turnout.core.toml import TomlError, read_toml

__all__ = ["BUILD_PROGRAMS", "build_program", "pyproject"]

BUILD_PROGRAMS = frozenset({"setup.py", "hatch_build.py", "pdm_build.py"})
"""Programs at the top of a repository that the build of its package runs."""

_PLUGINS = "pytest11"
_PLACES = (
    ("tool", "pytest"),
    ("tool", "setuptools", "dynamic", "entry-points"),
    ("tool", "hatch", "build", "hooks"),
    ("tool", "pdm", "build"),
    ("tool", "poetry", "build"),
    ("build-system", "backend-path"),
)
_PLAIN = frozenset(
    {
        *("name", "version", "description", "long_description", "long_description_content_type"),
        *("author", "author_email", "maintainer", "maintainer_email", "url", "download_url"),
        *("project_urls", "license", "license_files", "classifiers", "keywords", "platforms"),
        *("python_requires", "install_requires", "tests_require", "extras_require"),
        *("setup_requires", "packages", "package_dir", "package_data", "py_modules"),
        *("include_package_data", "zip_safe", "entry_points"),
    }
)
"""Arguments of `setup` that steer no test where they are plain values without such a plugin."""


def pyproject(text: str) -> str | None:
    """Return what in a `pyproject.toml` steers the tests; None where nothing does."""
    try:
        table = read_toml(text)
        found = [value for place in _PLACES if (value := _at(table, place)) is not None]
        found += _plugins(table)
    except (TomlError, RecursionError):
        return text
    return json.dumps(found, sort_keys=True, default=str) if found else None


def build_program(path: str, text: str) -> str:
    """Return what a program of a build does; of `setup.py` without what is plainly stated."""
    if path != "setup.py":
        return text
    try:
        module = ast.parse(text)
        return ast.dump(_Stated().visit(module))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text


def _at(table: object, place: tuple[str, ...]) -> object:
    for key in place:
        table = table.get(key) if isinstance(table, dict) else None
    return table


def _plugins(table: object) -> Iterator[object]:
    """Yield the tables of plugins, whichever tool they are for."""
    values = table if isinstance(table, list) else []
    if isinstance(table, dict):
        values = list(table.values())
        if _PLUGINS in table:
            yield table[_PLUGINS]
    for value in values:
        yield from _plugins(value)


class _Stated(ast.NodeTransformer):
    """Takes away plain values that are given to `setup` or to a name at the top."""

    def visit_Module(self, node: ast.Module) -> ast.Module:
        node.body = [
            statement
            for statement in node.body
            if not (isinstance(statement, ast.Assign) and _plain(statement.value))
        ]
        self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        if ast.unparse(node.func) in ("setup", "setuptools.setup"):
            node.keywords = [
                one for one in node.keywords if one.arg not in _PLAIN or not _plain(one.value)
            ]
        self.generic_visit(node)
        return node


def _plain(node: ast.expr) -> bool:
    try:
        return _PLUGINS not in repr(ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return False
