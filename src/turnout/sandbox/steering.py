"""What steers the tests from within files that hold other things as well."""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Final

from turnout.errors import ToolError
from turnout.sandbox.base import Sandbox

__all__ = ["read_steering", "steering_of"]

_INI = frozenset({"setup.cfg", "tox.ini"})
_RECIPES: Final[Mapping[str, frozenset[str]]] = {
    "make": frozenset({"GNUmakefile", "makefile", "Makefile"}),
    "tox": frozenset({"tox.ini"}),
    "nox": frozenset({"noxfile.py"}),
    "just": frozenset({"justfile", "Justfile", ".justfile"}),
    "task": frozenset({"Taskfile.yml", "Taskfile.yaml"}),
    "rake": frozenset({"Rakefile"}),
}
"""Files that say what a program does which a command names; all of such a file counts."""

_SCRIPTS = frozenset({"", ".sh", ".bash"})
"""Suffixes of what runs tests; another file that the command names may be the code under test."""

_WORD = re.compile(r"[^\s;&|()<>'\"=]+")
_NODE = ("npm", "pnpm", "yarn", "bun")
_NO_MATTER = frozenset(
    {
        *("dependencies", "devDependencies", "peerDependencies", "optionalDependencies"),
        *("name", "version", "description", "keywords", "license", "author", "repository"),
    }
)
"""Fields of `package.json` that are no settings of a test runner."""

_MOST_BYTES = 1 << 20


async def read_steering(
    sandbox: Sandbox, command: str, paths: Iterable[str]
) -> Mapping[str, str | None]:
    """Return what in each of these files of the workspace steers the tests that `command` runs.

    Two readings of a file that are equal steer alike. Files that are not there or hold nothing of
    that kind have None.
    """
    return {
        path: await _read(sandbox, command, path) for path in paths if _may_steer(path, command)
    }


def steering_of(path: str, text: str, command: str) -> str | None:
    """Return the part of a file's text that steers the tests; None where there is none."""
    name = PurePosixPath(path).name
    if not _may_steer(path, command):
        return None
    if _is_recipe(path, command):
        return text
    if name == "pyproject.toml":
        return _pytest_table(text)
    if name in _INI:
        # Sections are not told apart: another reader of the format than pytest may be misled.
        return text if "pytest" in text else None
    return _node_settings(text) if name == "package.json" else text


def _may_steer(path: str, command: str) -> bool:
    name = PurePosixPath(path).name
    if name == "package.json":
        return any(program in command for program in _NODE)
    return name == "pyproject.toml" or name in _INI or _is_recipe(path, command)


def _is_recipe(path: str, command: str) -> bool:
    """Say whether a file says what the command does: it names it, or the program that reads it."""
    pure = PurePosixPath(path)
    if any(program in command and pure.name in names for program, names in _RECIPES.items()):
        return True
    if pure.suffix not in _SCRIPTS:
        return False
    scripts = (word for word in _WORD.findall(command) if "/" in word or word.endswith("sh"))
    return any(f"/{path}".endswith("/" + word.removeprefix("./")) for word in scripts)


async def _read(sandbox: Sandbox, command: str, path: str) -> str | None:
    try:
        blob = await sandbox.read(path, limit=_MOST_BYTES)
    except ToolError:
        return None
    if blob.size > _MOST_BYTES:
        return blob.sha256
    return steering_of(path, blob.data.decode(errors="surrogateescape"), command)


def _pytest_table(text: str) -> str | None:
    try:
        tool = tomllib.loads(text).get("tool")
    except (ValueError, RecursionError):
        return text
    table = tool.get("pytest") if isinstance(tool, dict) else None
    return None if table is None else json.dumps(table, sort_keys=True, default=str)


def _node_settings(text: str) -> str:
    try:
        package = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(package, dict):
        return text
    return json.dumps({k: v for k, v in package.items() if k not in _NO_MATTER}, sort_keys=True)
