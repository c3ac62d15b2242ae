"""The files that a failing test may lead to, read from the workspace and no further."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from turnout.agent.base import Brief
from turnout.agent.repair.frames import Frame, frames
from turnout.agent.repair.grafting.names import used_names
from turnout.agent.repair.grafting.source import (
    MAX_SOURCE_BYTES,
    Definition,
    FunctionNode,
    Module,
    parse_module,
)
from turnout.agent.repair.plain import (
    SOURCE_SUFFIXES,
    as_text,
    called_names,
    defining,
    failing_tests,
    imported,
    mentioned,
    read_bytes,
    read_texts,
)
from turnout.core.runs import TestReport
from turnout.sandbox.base import Sandbox

__all__ = ["Sources", "named_tests", "read_sources", "used_fixtures"]

_MAX_LISTED = 5_000
_MAX_TESTS = 8
_MAX_MODULES = 60
_MAX_FOUND = 8

_MAX_REPORT = 20_000
"""Characters of a report in which names are looked for."""

_AUTOUSE = "autouse"

_WORD = re.compile(r"`?[A-Za-z_]\w{2,60}\b")
_CAMEL = re.compile(r"[a-z][A-Z]")


@dataclass(frozen=True, slots=True)
class Sources:
    """What was read; no file of `modules` and `others` is a test."""

    modules: tuple[Module, ...]
    """Python files, nearest to the failing tests first."""
    tests: tuple[Module, ...]
    """Python test files that fail, and the conftest files above them."""
    others: Mapping[str, bytes]
    """Text files that are not worked on as Python, most suspected first."""
    other_tests: Mapping[str, bytes] = field(default_factory=dict)
    """Failing test files of other languages."""


async def read_sources(
    sandbox: Sandbox, brief: Brief, report: TestReport, ran: Sequence[str] = ()
) -> Sources:
    """Read the failing tests, what they import in turn, and the files that the output names.

    `ran` are files of which it is known that failing tests run them.
    """
    listed = (await sandbox.list("**/*", limit=_MAX_LISTED)).paths
    tests = frozenset(brief.test_files) | set(filter(brief.test_paths.match, listed))
    places = frames(report.output)
    if not _is_python(report, places, tests):
        return await _read_plain(sandbox, brief, report, [p for p in listed if p not in tests])
    python = [path for path in listed if path.endswith(".py")]
    named = [frame.path for frame in places]
    failing = [node.partition("::")[0] for node in report.failed]
    starts = _known([*failing, *named], tests) or sorted(tests)
    starts = _with_conftests(starts[:_MAX_TESTS], python)
    test_modules = [m for path in starts if (m := await _module(sandbox, path)) is not None]
    code = _Reader(sandbox, [path for path in python if path not in tests])
    found = await _searched(sandbox, brief.prompt, test_modules, code.paths)
    await code.follow(_known([*named, *ran], frozenset(code.paths)), test_modules, found)
    said = [brief.prompt, *(m.text(0, len(m.data)) for m in test_modules)]
    said += [] if code.modules else [report.output]
    others = [path for path in listed if path not in tests and not path.endswith(".py")]
    others = mentioned(others, "\n".join(said), any_name=not code.modules)
    return Sources(
        tuple(code.modules.values()), tuple(test_modules), await read_texts(sandbox, others)
    )


def named_tests(module: Module, failed: Sequence[str]) -> tuple[Definition, ...]:
    """Return the functions of a test file that node ids mean, in the order of the file.

    A class may inherit a test: without a function of that class, all of its name are meant.
    """
    functions = [each for each in module.definitions if isinstance(each.node, FunctionNode)]
    found: set[int] = set()
    for node in failed:
        path, *names = node.partition("[")[0].split("::")
        if not names or not _same_file(path, module.path):
            continue
        exact = [each.start for each in functions if each.name == ".".join(names)]
        found.update(exact or [each.start for each in functions if each.last_name == names[-1]])
    return tuple(each for each in functions if each.start in found)


def used_fixtures(module: Module, tests: Iterable[Definition]) -> tuple[Definition, ...]:
    """Return the functions of a conftest file that tests ask for by their parameters, or get."""
    functions = {e.name: e for e in module.definitions if isinstance(e.node, FunctionNode)}
    asked = [name for test in tests for name in _parameters(test)]
    asked += [name for name, each in functions.items() if _AUTOUSE in _decorators(module, each)]
    found: set[str] = set()
    while asked:
        name = asked.pop()
        if name in functions and name not in found:
            found.add(name)
            asked += _parameters(functions[name])
    return tuple(each for name, each in functions.items() if name in found)


def _parameters(each: Definition) -> list[str]:
    node = each.node
    arguments = node.args.args if isinstance(node, FunctionNode) else []
    return [argument.arg for argument in arguments]


def _decorators(module: Module, each: Definition) -> str:
    return module.text(each.start, each.body)


def _same_file(path: str, other: str) -> bool:
    """Whether two paths end alike: tests may be run in a folder of the repository."""
    return f"/{path}".endswith(f"/{other}") or f"/{other}".endswith(f"/{path}")


def _is_python(report: TestReport, places: Sequence[Frame], tests: Iterable[str]) -> bool:
    """Whether the failing tests are of Python: pytest's, or by what a traceback names."""
    if report.failed:
        return True
    if places:
        return any(place.path.endswith(".py") for place in places)
    suffixes = {path.rpartition(".")[2] for path in tests}
    return "py" in suffixes or not suffixes & SOURCE_SUFFIXES


async def _read_plain(
    sandbox: Sandbox, brief: Brief, report: TestReport, paths: Sequence[str]
) -> Sources:
    """Read what failing tests of other languages lead to."""
    places = frames(report.output)
    tests = await read_texts(sandbox, failing_tests(places, brief.test_files), most=_MAX_TESTS)
    words = "\n".join([brief.prompt, report.output, *map(as_text, tests.values())])
    found = [
        *_known([place.path for place in places], frozenset(paths)),
        *imported(tests, paths),
        *mentioned(paths, words, any_name=True),
    ]
    if not found:
        found = await defining(sandbox, called_names(words), paths)
    return Sources((), (), await read_texts(sandbox, list(dict.fromkeys(found))), tests)


async def _searched(
    sandbox: Sandbox, prompt: str, tests: Sequence[Module], paths: Sequence[str]
) -> list[str]:
    """Return files that define what the report names; only trees too large to be read whole."""
    if len(paths) <= _MAX_MODULES:
        return []
    used = used_names([test.tree for test in tests])
    words = [word for word in _WORD.findall(prompt[:_MAX_REPORT]) if _is_name(word)]
    names = sorted({word.lstrip("`") for word in words}, key=lambda name: (name not in used, name))
    return (await defining(sandbox, names, paths, glob="**/*.py"))[:_MAX_FOUND]


def _is_name(word: str) -> bool:
    """Whether a word of a report is written as names of code are."""
    return word.startswith("`") or "_" in word or _CAMEL.search(word) is not None


class _Reader:
    """Follows imports through the source files, breadth first, up to a bound."""

    def __init__(self, sandbox: Sandbox, paths: Sequence[str]) -> None:
        self.paths = paths
        self.modules: dict[str, Module] = {}
        self._sandbox = sandbox
        self._tried: set[str] = set()
        self._by_tail = _by_tail(paths)

    async def follow(
        self, first: Sequence[str], tests: Sequence[Module], last: Sequence[str]
    ) -> None:
        queue = [*first, *self._imported(tests), *last]
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


async def _module(sandbox: Sandbox, path: str) -> Module | None:
    data = await read_bytes(sandbox, path, MAX_SOURCE_BYTES)
    return None if data is None else parse_module(path, data)
