"""Runs inside a set-up sandbox: tell what the installation of a project has made.

    python3 -ISE -c SOURCE VENV TREE BASE

The project in `TREE` was installed editable into `VENV`, or that failed; `BASE` is the tree as it
was before. Prints one JSON object, see `turnout.sandbox.setup.project`. Nothing of the project is
run, and nothing that it has made is believed to be more than text.
"""

from __future__ import annotations

import ast
import glob
import json
import os
import sys
from collections.abc import Iterator
from email.parser import HeaderParser

__all__ = [
    "Static",
    "as_list",
    "called",
    "described",
    "is_text",
    "items",
    "made",
    "main",
    "passed_over",
    "paths",
    "read",
    "required_statically",
    "requires",
]

KEPT = ("METADATA", "WHEEL", "INSTALLER", "entry_points.txt", "top_level.txt", "direct_url.json")
MOST_TEXT = 256 << 10
MOST_LINES = 500
MOST_MADE = 2_000
MOST_MADE_BYTES = 256 << 20
MOST_DEPTH = 50
MOST_STEPS = 20_000
PASSED_OVER = ("__pycache__", ".git", ".eggs", ".tox", ".mypy_cache", "node_modules")
KEYWORDS = ("install_requires", "tests_require")


def read(path: str) -> str:
    """Return the text of a small regular file; nothing where it is none."""
    try:
        if os.path.islink(path) or not os.path.isfile(path):
            return ""
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(MOST_TEXT)
    except OSError:
        return ""


def described(packages: str) -> dict[str, str]:
    """Return the files that describe the project which was installed editable."""
    for folder in sorted(glob.glob(os.path.join(glob.escape(packages), "*.dist-info"))):
        if '"editable"' in read(os.path.join(folder, "direct_url.json")):
            found = {name: read(os.path.join(folder, name)) for name in KEPT}
            return {name: text for name, text in found.items() if text}
    return {}


def paths(packages: str, tree: str) -> list[str]:
    """Return the folders of the tree that were put on Python's path."""
    found: dict[str, None] = {}
    for file in sorted(glob.glob(os.path.join(glob.escape(packages), "*.pth"))):
        for line in read(file).splitlines():
            path = os.path.normpath(line)
            if path == tree or path.startswith(tree + "/"):
                found[path] = None
    return list(found)[:MOST_LINES]


def requires(metadata: str) -> list[str]:
    """Return the requirements that metadata states."""
    lines = HeaderParser().parsestr(metadata).get_all("Requires-Dist") or []
    return [str(line) for line in lines][:MOST_LINES]


class Static:
    """The values of names and of expressions that can be told without running anything."""

    def __init__(self, module: ast.Module) -> None:
        self.names: dict[str, ast.expr] = {}
        self.left = MOST_STEPS
        for node in module.body:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self.names[target.id] = node.value

    def value(self, node: ast.expr, depth: int = 0) -> object:
        """Return the value of an expression; `ValueError` where it has to be computed."""
        self.left -= 1
        if depth > MOST_DEPTH or self.left < 0:
            raise ValueError("it is too long")
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name) and node.id in self.names:
            return self.value(self.names[node.id], depth + 1)
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return [self.value(one, depth + 1) for one in node.elts]
        if isinstance(node, ast.Dict) or (isinstance(node, ast.Call) and called(node) == "dict"):
            return {
                str(self.value(key, depth + 1)): self.value(one, depth + 1)
                for key, one in items(node)
            }
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.expr):
            table = self.value(node.value, depth + 1)
            if isinstance(table, dict):
                return table.get(str(self.value(node.slice, depth + 1)), [])
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = self.value(node.left, depth + 1), self.value(node.right, depth + 1)
            if isinstance(left, list) and isinstance(right, list):
                return left + right
        raise ValueError("it is computed")

    def lines(self, node: ast.expr) -> Iterator[str]:
        """Yield the strings of a list, or the lines of a text."""
        try:
            value = self.value(node)
        except ValueError:
            return
        for one in value.splitlines() if isinstance(value, str) else as_list(value):
            if isinstance(one, str) and one.strip():
                yield one.strip()

    def extras(self, node: ast.expr) -> Iterator[str]:
        """Yield the requirements of extras, each marked with its name."""
        if isinstance(node, ast.Name):
            node = self.names.get(node.id, node)
        for key, value in items(node):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                for line in self.lines(value):
                    requirement, _, marker = line.partition(";")
                    extra = f"extra == {json.dumps(key.value)}"
                    held = f"({marker.strip()}) and {extra}" if marker.strip() else extra
                    yield f"{requirement.strip()} ; {held}"


def items(node: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """Return keys and values of a dictionary as it is written; nothing for anything else."""
    if isinstance(node, ast.Call) and called(node) == "dict":
        named = [(keyword.arg, keyword.value) for keyword in node.keywords]
        return [(ast.Constant(name), value) for name, value in named if name is not None]
    if not isinstance(node, ast.Dict):
        return []
    return [(key, node.values[n]) for n, key in enumerate(node.keys) if key is not None]


def as_list(value: object) -> list[object]:
    """Return a list as it is, and an empty one in place of anything else."""
    return value if isinstance(value, list) else []


def required_statically(source: str) -> list[str]:
    """Return the requirements that a `setup.py` states in so many words."""
    try:
        module = ast.parse(source)
        static = Static(module)
        found: list[str] = []
        for node in ast.walk(module):
            if isinstance(node, ast.Call) and called(node) == "setup":
                for keyword in node.keywords:
                    if keyword.arg in KEYWORDS:
                        found += static.lines(keyword.value)
                    elif keyword.arg == "extras_require":
                        found += static.extras(keyword.value)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return found[:MOST_LINES]


def called(node: ast.Call) -> str:
    """Return the last name of what is called."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def made(tree: str, base: str) -> tuple[list[str], bool]:
    """Return the regular files that are in the tree alone, and whether these are all."""
    found: list[str] = []
    size = 0
    for folder, names, files in os.walk(tree):
        inner = os.path.relpath(folder, tree)
        names[:] = [name for name in names if not passed_over(inner, name)]
        for name in files:
            path = os.path.normpath(os.path.join(inner, name))
            whole = os.path.join(tree, path)
            if os.path.islink(whole) or not os.path.isfile(whole):
                continue
            if not os.path.lexists(os.path.join(base, path)):
                found.append(path)
                size += os.path.getsize(whole)
            if len(found) > MOST_MADE or size > MOST_MADE_BYTES:
                return [], False
    return sorted(found), True


def passed_over(folder: str, name: str) -> bool:
    """Say whether what a folder holds is of no use to anybody who imports the project."""
    at_top = folder == "." and name in ("build", "dist")
    return at_top or name in PASSED_OVER or name.endswith((".egg-info", ".dist-info"))


def main(venv: str, tree: str, base: str) -> None:
    """Print what is known."""
    version = ".".join(str(number) for number in sys.version_info[:2])
    packages = os.path.join(venv, "lib", "python" + version, "site-packages")
    files = described(packages)
    found, complete = made(tree, base)
    facts = {
        "files": files,
        "paths": paths(packages, tree),
        "requires": requires(files.get("METADATA", "")),
        "stated": required_statically(read(os.path.join(tree, "setup.py"))),
        "made": [path for path in found if is_text(path)],
        "made_all": complete,
    }
    sys.stdout.write(json.dumps(facts))


def is_text(path: str) -> bool:
    """Say whether a path can be written in UTF-8."""
    return os.fsencode(path).decode(errors="replace") == path


if __name__ == "__main__":
    main(*sys.argv[1:])
