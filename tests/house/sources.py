"""Parsed source files, for the tests that hold the house rules."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "turnout"

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """One Python file."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        """Path relative to the checkout."""
        return self.path.relative_to(ROOT).as_posix()

    def functions(self) -> Iterator[Function]:
        """Every function and method, nested ones included."""
        for node in ast.walk(self.tree):
            if isinstance(node, Function):
                yield node

    def classes(self) -> Iterator[ast.ClassDef]:
        """Every class, nested ones included."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ClassDef):
                yield node


def sources(*folders: Path) -> list[Source]:
    """Every Python file beneath the folders; the package by default."""
    return [source for folder in folders or (SRC,) for source in _parsed(folder)]


@cache
def _parsed(folder: Path) -> list[Source]:
    texts = [(path, path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.py"))]
    return [Source(path, text, ast.parse(text)) for path, text in texts]
