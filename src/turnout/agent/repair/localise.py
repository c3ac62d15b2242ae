"""Which definitions the failing tests point at, most suspected first."""

import ast
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from turnout.agent.repair.grafting.matching import Target
from turnout.agent.repair.grafting.names import used_names
from turnout.agent.repair.grafting.source import Definition, FunctionNode, Module
from turnout.agent.repair.reading import Sources, frames
from turnout.core.runs import TestReport

__all__ = ["Suspects", "localise"]

_DEEPEST, _PASSED, _TESTED, _CALLED, _NAMED, _METHOD = 10.0, 4.0, 6.0, 3.0, 4.0, 0.5
"""Weight of: the deepest frame of a traceback, any other; a name that a failing test imports, one
that it only mentions; a name in the report; a method of a suspected class, as a share."""

_HOPS = 2
_HOP = 0.5
"""Share of a suspicion that what it calls inherits."""

_LONGEST = 4_500
"""Bytes of the longest definition that a small model is asked to write anew."""

_LEAST = 0.1
"""Share of the greatest suspicion below which there is none."""


@dataclass(frozen=True, slots=True)
class Suspects:
    """Where the fault may be."""

    modules: tuple[Module, ...]
    """All that was read, most suspected first."""
    targets: tuple[Target, ...]
    """Definitions with any suspicion that can be written anew, most suspected first; classes only
    by their members."""
    longest: int
    """Bytes of the longest of `targets`."""

    def of(self, module: Module) -> tuple[str, ...]:
        """Return the suspected names of one file, most suspected first."""
        return tuple(each.name for each in self.targets if each.path == module.path)

    def is_suspected(self, module: Module) -> bool:
        """Whether anything of a file is suspected."""
        return any(each.path == module.path for each in self.targets)


def localise(sources: Sources, prompt: str, report: TestReport) -> Suspects:
    """Weigh every definition by traceback, failing tests, report, and calls between them.

    What tests use that do not fail is suspected less.
    """
    tests = _split(sources.tests, report)
    innocence = Counter(name for node in tests.others for name in used_names([node]))
    weights: dict[Target, float] = defaultdict(float)
    for target, weight in _evidence(sources, prompt, report, tests.failing):
        weights[target] += weight * _doubt(target.name, innocence)
    _spread(sources.modules, weights, innocence)
    found = {Target(module.path, each.name): each for module, each in _all(sources.modules)}
    owners = {Target(target.path, target.name.rpartition(".")[0]) for target in found}
    least = _LEAST * max(weights.values(), default=0.0)
    order = {target: index for index, target in enumerate(found) if target not in owners}
    sizes = {target: each.end - each.start for target, each in found.items()}
    suspected = [t for t in order if weights.get(t, 0.0) > least and sizes[t] <= _LONGEST]
    targets = sorted(suspected, key=lambda t: (-weights[t], order[t]))
    best = {target.path: -weights[target] for target in reversed(targets)}
    modules = sorted(sources.modules, key=lambda module: best.get(module.path, 0.0))
    longest = max((sizes[target] for target in targets), default=0)
    return Suspects(tuple(modules), tuple(targets), longest)


@dataclass(frozen=True, slots=True)
class _Tests:
    failing: tuple[ast.AST, ...]
    """Failing test functions and what they may use; whole files where none can be told."""
    others: tuple[ast.AST, ...]
    """Test functions that do not fail."""


def _split(tests: Sequence[Module], report: TestReport) -> _Tests:
    plain = [node.partition("[")[0] for node in report.failed]
    names = {node.rpartition("::")[2] for node in plain if "::" in node}
    failing: list[ast.AST] = []
    others: list[ast.AST] = []
    for test in tests:
        functions = [e for e in test.definitions if isinstance(e.node, FunctionNode)]
        told = [each.node for each in functions if each.last_name in names]
        failing += told or [test.tree]
        if told:
            failing += [e.node for e in functions if not e.last_name.startswith("test")]
            others += [
                each.node
                for each in functions
                if each.last_name.startswith("test") and each.last_name not in names
            ]
    return _Tests(tuple(failing), tuple(others))


def _doubt(name: str, innocence: Mapping[str, int]) -> float:
    """Return the share of a suspicion that is left by the tests that use a name and pass."""
    return 1 / math.sqrt(1 + max(innocence.get(part, 0) for part in name.split(".")))


def _all(modules: Sequence[Module]) -> Iterator[tuple[Module, Definition]]:
    for module in modules:
        for each in module.definitions:
            yield module, each


def _around(module: Module, line: int) -> list[Definition]:
    """Return the innermost function around a line, if there is one."""
    inside = [
        each
        for each in module.definitions
        if isinstance(each.node, FunctionNode)
        and each.node.lineno <= line <= (each.node.end_lineno or each.node.lineno)
    ]
    return inside[-1:]


def _evidence(
    sources: Sources, prompt: str, report: TestReport, failing: Sequence[ast.AST]
) -> Iterator[tuple[Target, float]]:
    places = frames(report.output)
    used = used_names(failing)
    imported = {
        alias.name
        for test in sources.tests
        for node in ast.walk(test.tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    words = frozenset(re.findall(r"[A-Za-z_]\w{2,}", prompt))
    for module in sources.modules:
        lines = [frame.line for frame in places if frame.path == module.path]
        for index, line in enumerate(lines):
            for each in _around(module, line):
                last = index == len(lines) - 1
                yield Target(module.path, each.name), _DEEPEST if last else _PASSED
    for module, each in _all(sources.modules):
        target, name = Target(module.path, each.name), each.last_name
        if name in used and not name.startswith("__"):
            yield target, _TESTED if name in imported else _CALLED
        if name in words:
            yield target, _NAMED


def _spread(
    modules: Sequence[Module], weights: dict[Target, float], innocence: Mapping[str, int]
) -> None:
    """Let suspicion pass to methods of a suspected class and to what suspects call."""
    by_name: dict[str, list[Target]] = defaultdict(list)
    uses: dict[Target, frozenset[str]] = {}
    for module, each in _all(modules):
        target = Target(module.path, each.name)
        if not each.last_name.startswith("__"):
            by_name[each.last_name].append(target)
        if not isinstance(each.node, ast.ClassDef):
            uses[target] = used_names([each.node])
        owner = Target(module.path, each.name.rpartition(".")[0])
        if owner in weights and isinstance(each.node, FunctionNode):
            weights[target] += _METHOD * weights[owner]
    reached: Mapping[Target, float] = dict(weights)
    for _ in range(_HOPS):
        inherited: dict[Target, float] = defaultdict(float)
        for target, weight in reached.items():
            for name in uses.get(target, frozenset()):
                callees = by_name.get(name, [])
                for callee in callees:
                    share = _HOP * weight * _doubt(callee.name, innocence) / len(callees)
                    if callee != target:
                        inherited[callee] = max(inherited[callee], share)
        for target, weight in inherited.items():
            weights[target] += weight
        reached = inherited
