"""Reading, from files of a workspace, what in them steers the tests."""

import json
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from turnout.errors import ToolError
from turnout.sandbox.base import Sandbox
from turnout.sandbox.steering.modules import loads_plugins, roots_of, runs_code, stands_in
from turnout.sandbox.steering.packaging import BUILD_PROGRAMS, build_program, pyproject
from turnout.sandbox.steering.programs import Said, reached
from turnout.sandbox.testrun import USUAL_TESTS, TestPaths

__all__ = ["read_steering", "steering_of"]

_INI = frozenset({"setup.cfg", "tox.ini"})
_TEXTS = frozenset({".cfg", ".ini", ".toml", ".txt"})
"""Suffixes of files from which a build can take the plugins that a package brings."""
_NODE = ("npm", "pnpm", "yarn", "bun")
_NO_MATTER = frozenset(
    {
        *("dependencies", "devDependencies", "peerDependencies", "optionalDependencies"),
        *("name", "version", "description", "keywords", "license", "author", "repository"),
    }
)
"""Fields of `package.json` that are no settings of a test runner."""

_STANDS_IN = "stands in for a module of the standard library"
_MOST_BYTES = 1 << 20
_MOST_SEARCHED = 64 << 20
_MOST_FILES = 100_000
_MOST_SCRIPTS = 50
_MOST_SAID = 128 << 10
"""Characters of one script or recipe that are looked through for what it runs."""


async def read_steering(
    sandbox: Sandbox, command: str, paths: Iterable[str], tests: TestPaths = USUAL_TESTS
) -> Mapping[str, str | None]:
    """Return what in each of these files of the workspace steers the tests that `command` runs.

    Two readings of a file that are equal steer alike. Files that are not there or hold nothing of
    that kind have None. `tests`: the paths of tests.
    """
    paths = tuple(paths)
    said = await _said(sandbox, command)
    found = {
        path: await _read(sandbox, said, path, tests)
        for path in paths
        if _may_steer(path, said, tests)
    }
    if any(stands_in(path) for path in paths):
        listing = frozenset((await sandbox.list(limit=_MOST_FILES)).paths)
        roots = roots_of(listing, tests)
        for path in listing.intersection(paths):
            if stands_in(path, roots) and found.get(path) is None:
                found[path] = _STANDS_IN
    return found


def steering_of(path: str, text: str, command: str, tests: TestPaths = USUAL_TESTS) -> str | None:
    """Return the part of a file's text that steers the tests; None where there is none."""
    return _steering(path, text, Said(command), tests)


def _steering(path: str, text: str, said: Said, tests: TestPaths) -> str | None:
    name = PurePosixPath(path).name
    if not _may_steer(path, said, tests):
        return None
    if said.names(path):
        return text
    if path in BUILD_PROGRAMS:
        return build_program(path, text)
    if name == "pyproject.toml":
        return pyproject(text)
    if name in _INI:
        # Sections are not told apart: another reader of the format than pytest may be misled.
        return text if "pytest" in text else None
    if name == "package.json":
        return _node_settings(text)
    if name == "__init__.py" and runs_code(text):
        return text
    steers = loads_plugins(text) if name.endswith(".py") else "pytest11" in text
    return text if steers else None


def _may_steer(path: str, said: Said, tests: TestPaths) -> bool:
    pure = PurePosixPath(path)
    if pure.name == "package.json":
        return any(program in said.text for program in _NODE)
    if pure.suffix in _TEXTS or path in BUILD_PROGRAMS or said.names(path):
        return True
    return pure.suffix == ".py" and tests.match(path)


async def _said(sandbox: Sandbox, command: str) -> Said:
    """Return all that the command says, by the scripts and recipes that it runs as well."""
    said = Said(command)
    if not said.leads_on:
        return said
    paths = [*(await sandbox.list(limit=_MOST_FILES)).paths]
    seen: set[str] = set()
    told = [said.text]
    pending = [said]
    while pending and len(seen) < _MOST_SCRIPTS:
        now = pending.pop()
        for path in [p for p in paths if p not in seen and now.leads_to(p)][:_MOST_SCRIPTS]:
            seen.add(path)
            text, _ = await _text(sandbox, path)
            told.append(reached(path, (text or "")[:_MOST_SAID], now.text))
            pending.append(Said(told[-1]))
    return Said("\n".join(told))


async def _read(sandbox: Sandbox, said: Said, path: str, tests: TestPaths) -> str | None:
    text, whole = await _text(sandbox, path)
    if whole:
        return None if text is None else _steering(path, text, said, tests)
    return None if not said.names(path) and await _is_data(sandbox, path) else text


async def _is_data(sandbox: Sandbox, path: str) -> bool:
    """Say whether a huge file has no word about pytest, in a format that writes it in one way."""
    pure = PurePosixPath(path)
    if pure.suffix not in _TEXTS or pure.suffix == ".toml":
        return False
    try:
        blob = await sandbox.read(path, limit=_MOST_SEARCHED)
    except ToolError:
        return False
    return len(blob.data) == blob.size and b"pytest" not in blob.data


async def _text(sandbox: Sandbox, path: str) -> tuple[str | None, bool]:
    """Return the text of a file, or its hash where it is huge, and whether it is the text."""
    try:
        blob = await sandbox.read(path, limit=_MOST_BYTES)
    except ToolError:
        return None, True
    if blob.size > _MOST_BYTES:
        return blob.sha256, False
    return blob.data.decode(errors="surrogateescape"), True


def _node_settings(text: str) -> str:
    try:
        package = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(package, dict):
        return text
    return json.dumps({k: v for k, v in package.items() if k not in _NO_MATTER}, sort_keys=True)
