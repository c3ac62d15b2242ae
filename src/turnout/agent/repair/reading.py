"""The files that a failing test may lead to, read from the workspace and no further."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from turnout.agent.base import Brief
from turnout.agent.repair.grafting.source import MAX_SOURCE_BYTES, Module, parse_module
from turnout.core.runs import TestReport
from turnout.errors import ToolError
from turnout.sandbox.base import REPO, Sandbox
from turnout.sandbox.testrun import is_test_path

__all__ = ["Frame", "Sources", "frames", "read_sources"]

_MAX_LISTED = 5_000
_MAX_TESTS = 8
_MAX_MODULES = 60
_MAX_OTHERS = 6
_MAX_OTHER_BYTES = 32_768

_PYTEST_FRAME = re.compile(r"^(?:E\s+)?([^\s:\"]+\.\w+):(\d+)", re.MULTILINE)
_PYTHON_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1f]")


@dataclass(frozen=True, slots=True)
class Frame:
    """A place that the test output names."""

    path: str
    """Relative to the workspace."""
    line: int


@dataclass(frozen=True, slots=True)
class Sources:
    """What was read; no file of `modules` and `others` is a test."""

    modules: tuple[Module, ...]
    """Python files, nearest to the failing tests first."""
    tests: tuple[Module, ...]
    """Test files that fail, and the conftest files above them."""
    others: Mapping[str, bytes]
    """Text files that are no Python and are named by the report or a failing test."""


def frames(output: str) -> tuple[Frame, ...]:
    """Return the places that a test output names, in its order; those outside are left out."""
    found = [
        (match.start(), match[1], int(match[2]))
        for pattern in (_PYTEST_FRAME, _PYTHON_FRAME)
        for match in pattern.finditer(output)
    ]
    inside = (Frame(_relative(path), line) for _, path, line in sorted(found))
    return tuple(dict.fromkeys(each for each in inside if not each.path.startswith(("/", "../"))))


async def read_sources(sandbox: Sandbox, brief: Brief, report: TestReport) -> Sources:
    """Read the failing tests, what they import in turn, and the files that the output names."""
    listed = (await sandbox.list("**/*", limit=_MAX_LISTED)).paths
    tests = frozenset(brief.test_files) | {path for path in listed if is_test_path(path)}
    python = [path for path in listed if path.endswith(".py")]
    named = [frame.path for frame in frames(report.output)]
    failing = [node.partition("::")[0] for node in report.failed]
    starts = _known([*failing, *named], tests) or sorted(tests)
    starts = _with_conftests(starts[:_MAX_TESTS], python)
    test_modules = [m for path in starts if (m := await _module(sandbox, path)) is not None]
    code = _Reader(sandbox, [path for path in python if path not in tests])
    await code.follow(_known(named, frozenset(code.paths)), test_modules)
    said = [brief.prompt, *(m.text(0, len(m.data)) for m in test_modules)]
    said += [] if code.modules else [report.output]
    others = [path for path in listed if path not in tests and not path.endswith(".py")]
    return Sources(
        tuple(code.modules.values()),
        tuple(test_modules),
        await _read_others(sandbox, others, "\n".join(said), any_name=not code.modules),
    )


class _Reader:
    """Follows imports through the source files, breadth first, up to a bound."""

    def __init__(self, sandbox: Sandbox, paths: Sequence[str]) -> None:
        self.paths = paths
        self.modules: dict[str, Module] = {}
        self._sandbox = sandbox
        self._tried: set[str] = set()
        self._by_tail = _by_tail(paths)

    async def follow(self, first: Sequence[str], tests: Sequence[Module]) -> None:
        queue = [*first, *self._imported(tests)]
        while queue and len(self.modules) < _MAX_MODULES:
            fresh = [m for path in queue if (m := await self._read(path)) is not None]
            queue = list(self._imported(fresh))
        for path in self.paths:
            if len(self.paths) <= _MAX_MODULES:
                await self._read(path)

    async def _read(self, path: str) -> Module | None:
        if path in self._tried or len(self.modules) >= _MAX_MODULES:
            return None
        self._tried.add(path)
        module = await _module(self._sandbox, path)
        if module is not None:
            self.modules[path] = module
        return module

    def _imported(self, modules: Iterable[Module]) -> Iterator[str]:
        for module in modules:
            for name in _imports(module):
                yield from self._by_tail.get(name, ())


def _imports(module: Module) -> Iterator[str]:
    """Yield what a module imports, as a path without its suffix; relative imports resolved."""
    folder = module.path.split("/")[:-1]
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.replace(".", "/") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = folder[: len(folder) - node.level + 1] if node.level else []
            base = [*above, *(node.module or "").split(".")]
            parts = [part for part in base if part]
            yield "/".join(parts)
            yield from ("/".join([*parts, alias.name]) for alias in node.names)


def _by_tail(paths: Iterable[str]) -> Mapping[str, list[str]]:
    """Return the files that may be meant by an import, shortest path first."""
    found: dict[str, list[str]] = {}
    for path in sorted(paths, key=lambda each: (each.count("/"), each)):
        parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
        for start in range(len(parts)):
            found.setdefault("/".join(parts[start:]), []).append(path)
    return found


def _known(paths: Iterable[str], known: frozenset[str]) -> list[str]:
    return [path for path in dict.fromkeys(paths) if path in known]


def _with_conftests(tests: Sequence[str], python: Sequence[str]) -> list[str]:
    folders = {path.rpartition("/")[0] for path in tests}
    above = [
        path
        for path in python
        if path.rpartition("/")[2] == "conftest.py"
        and any(f"{folder}/".startswith(path.removesuffix("conftest.py")) for folder in folders)
    ]
    return list(dict.fromkeys([*tests, *above]))


def _relative(path: str) -> str:
    return path.removeprefix(f"{REPO}/").removeprefix("./")


async def _module(sandbox: Sandbox, path: str) -> Module | None:
    data = await _bytes(sandbox, path, MAX_SOURCE_BYTES)
    return None if data is None else parse_module(path, data)


async def _bytes(sandbox: Sandbox, path: str, limit: int) -> bytes | None:
    """Return a whole file; None where it is larger than `limit` or no regular file."""
    try:
        blob = await sandbox.read(path, limit=limit)
    except ToolError:
        return None
    return blob.data if blob.size <= limit else None


async def _read_others(
    sandbox: Sandbox, paths: Sequence[str], words: str, *, any_name: bool
) -> Mapping[str, bytes]:
    """Return the text files whose name occurs in `words`; by the stem alone if `any_name`."""
    found: dict[str, bytes] = {}
    for path in paths:
        name = path.rpartition("/")[2]
        stem = name.partition(".")[0]
        said = name in words or (any_name and len(stem) > 2 and stem in words)
        if said and not name.startswith(".") and len(found) < _MAX_OTHERS:
            data = await _bytes(sandbox, path, _MAX_OTHER_BYTES)
            if data and not _BINARY.search(data):
                found[path] = data
    return found
