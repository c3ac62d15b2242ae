"""Joining the modules of the resident agent into the one file that a sandbox is given."""

import ast
from importlib.resources import files

__all__ = ["resident_source"]

_MODULES = ("wire", "files", "processes", "command", "resident")
_PACKAGE = "turnout"


def _body(source: str) -> list[ast.stmt]:
    """Return a module's statements without those that only make sense in the package."""

    def belongs(node: ast.stmt) -> bool:
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            return module != "__future__" and module.partition(".")[0] != _PACKAGE
        return not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))

    return [node for node in ast.parse(source).body if belongs(node)]


def resident_source() -> bytes:
    """Return the resident agent as one standalone script for Python 3.8 or newer."""
    folder = files("turnout.sandbox.inside")
    joined = ast.Module(body=[], type_ignores=[])
    for name in _MODULES:
        joined.body += _body((folder / f"{name}.py").read_text())
    return f"from __future__ import annotations\n{ast.unparse(joined)}\n".encode()
