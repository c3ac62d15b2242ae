"""Which definitions the failing tests point at, most suspected first."""

import ast
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from turnout.agent.repair.frames import Frame, frames
from turnout.agent.repair.grafting.excerpt import Region, regions
from turnout.agent.repair.grafting.matching import Target
from turnout.agent.repair.grafting.names import used_names
from turnout.agent.repair.grafting.source import (
    Definition,
    FunctionNode,
    Module,
    docstring_of,
)
from turnout.agent.repair.reading import Sources, named_tests
from turnout.agent.repair.showing.marks import errors_by_line
from turnout.agent.repair.suspects import Suspects
from turnout.agent.repair.tracing.coverage import Coverage
from turnout.core.runs import TestReport

__all__ = ["localise"]

_DEEPEST, _PASSED, _TESTED, _CALLED, _NAMED, _METHOD = 10.0, 4.0, 6.0, 3.0, 4.0, 0.5
"""Weight of: the deepest frame of a traceback, any other; a name that a failing test imports, one
that it only mentions; a name in the report; a method of a suspected class, as a share."""

_BROKE = 12.0
"""Weight of a function in which a statement failed that is no `raise`."""

_RUN = 6.0
"""Weight of a function that all failing tests run and no passing one."""

_IDLE = 0.2
"""Share of a suspicion that is left of what no failing test runs."""

_CONSTANT = 0.3
"""Share of a suspicion that is left of what is no function."""

_HOPS = 2
_HOP = 0.5
"""Share of a suspicion that what it calls inherits."""

_LONGEST = 2_600
"""Bytes of the longest definition that a small model is to write anew, its docstring aside."""

_REGION, _MOST_REGIONS = 800, 4
"""Bytes of the lines that it is shown of a longer one, and how many such places."""

_MOST_LINES = 12
"""Lines in question of one file."""

_LEAST = 0.1
"""Share of the greatest suspicion below which there is none."""


def localise(
    sources: Sources, prompt: str, report: TestReport, coverage: Coverage | None = None
) -> Suspects:
    """Weigh every definition by traceback, failing tests, report, calls, and what tests run.

    What tests use that do not fail is suspected less, and what no failing test runs.
    """
    places, coverage = frames(report.output), coverage or Coverage()
    raised = {path: tuple(lines) for path, lines in errors_by_line(report.output).items()}
    tests = _split(sources.tests, report)
    innocence = Counter(name for node in tests.others for name in used_names([node]))
    weights: dict[Target, float] = defaultdict(float)
    for target, weight in _evidence(sources, prompt, places, tests.failing):
        weights[target] += weight * _doubt(target.name, innocence)
    broken = frozenset(_broken(sources.modules, raised))
    for target in broken:
        weights[target] += _BROKE
    _spread(sources.modules, weights, innocence)
    _count_runs(sources.modules, weights, coverage)
    found = _suspects(sources.modules, weights, _lines(places, coverage), raised)
    return replace(found, broken=broken & found.regions.keys())


def _suspects(
    modules: Sequence[Module],
    weights: Mapping[Target, float],
    lines: Mapping[str, tuple[int, ...]],
    raised: Mapping[str, tuple[int, ...]],
) -> Suspects:
    found = {Target(module.path, each.name): (module, each) for module, each in _all(modules)}
    owners = {_owner(target) for target in found}
    sizes = {
        target: _size(module, each)
        for target, (module, each) in found.items()
        if target not in owners or not isinstance(each.node, ast.ClassDef)
    }
    suspicion = _of_outermost(sizes, weights)
    least = _LEAST * max(suspicion.values(), default=0.0)
    targets = sorted((t for t in suspicion if suspicion[t] > least), key=lambda t: -suspicion[t])
    long = frozenset(target for target in targets if sizes[target] > _LONGEST)
    cuts: dict[Target, tuple[Region, ...]] = {}
    for target in targets:
        wanted = (lines if target in long else raised).get(target.path, ())
        if wanted or target in long:
            said = {region for other in cuts if other.path == target.path for region in cuts[other]}
            cut = regions(*found[target], wanted, _REGION, _MOST_REGIONS)
            cuts[target] = tuple(region for region in cut if region not in said)
    targets = [target for target in targets if target not in long or cuts[target]]
    best = {target.path: -suspicion[target] for target in reversed(targets)}
    return Suspects(
        tuple(sorted(modules, key=lambda module: best.get(module.path, 0.0))),
        tuple(targets),
        max((sizes[target] for target in targets if target not in long), default=0),
        {target: cut for target, cut in cuts.items() if cut},
        long,
        frozenset(t for t in targets if not isinstance(found[t][1].node, FunctionNode)),
        lines={path: numbers[:_MOST_LINES] for path, numbers in lines.items()},
    )


def _of_outermost(
    sizes: Mapping[Target, int], weights: Mapping[Target, float]
) -> Mapping[Target, float]:
    """Return the suspicion of each, a function in a function counted as the outer if not long."""
    found: dict[Target, float] = {}
    for target in sizes:
        outer = target
        while sizes.get(owner := _owner(outer), _LONGEST + 1) <= _LONGEST:
            outer = owner
        found[outer] = max(found.get(outer, 0.0), weights.get(target, 0.0))
    return found


def _owner(target: Target) -> Target:
    return Target(target.path, target.name.rpartition(".")[0])


def _size(module: Module, each: Definition) -> int:
    """Return the bytes of a definition, its docstring aside."""
    node = each.node
    doc = docstring_of(node) if isinstance(node, FunctionNode | ast.ClassDef) else None
    size = each.end - each.start
    if doc is None:
        return size
    return size - len(module.lines(doc.lineno, doc.end_lineno or doc.lineno).encode())


def _lines(places: Sequence[Frame], coverage: Coverage) -> Mapping[str, tuple[int, ...]]:
    """Return the lines in question: of tracebacks, deepest first, then by what tests run them."""
    found: dict[str, list[int]] = defaultdict(list)
    for place in reversed(places):
        found[place.path].append(place.line)
    for path, lines in coverage.lines.items():
        found[path] += sorted(lines, key=lambda line: (-lines[line], line))
    return {path: tuple(dict.fromkeys(lines)) for path, lines in found.items()}


def _count_runs(
    modules: Sequence[Module], weights: dict[Target, float], coverage: Coverage
) -> None:
    """Let count which functions the failing tests run, where that is known, and what is none."""
    for module, each in _all(modules):
        target, node, idle = Target(module.path, each.name), each.node, False
        if not isinstance(node, FunctionNode):
            idle = module.path not in coverage.lines
            weights[target] *= _CONSTANT
        elif coverage.lines:
            first = node.body[1] if docstring_of(node) and len(node.body) > 1 else node.body[0]
            run = coverage.of(module.path, first.lineno, node.end_lineno or first.lineno)
            weights[target] += _RUN * run
            idle = not run
        if idle and coverage.lines:
            weights[target] *= _IDLE


@dataclass(frozen=True, slots=True)
class _Tests:
    failing: tuple[ast.AST, ...]
    """Failing test functions and what they may use; whole files where none can be told."""
    others: tuple[ast.AST, ...]
    """Test functions that do not fail."""


def _split(tests: Sequence[Module], report: TestReport) -> _Tests:
    failing: list[ast.AST] = []
    others: list[ast.AST] = []
    for test in tests:
        functions = [e for e in test.definitions if isinstance(e.node, FunctionNode)]
        told = named_tests(test, report.failed)
        failing += [each.node for each in told] or [test.tree]
        if told:
            failing += [e.node for e in functions if not e.last_name.startswith("test")]
            others += [
                each.node
                for each in functions
                if each.last_name.startswith("test") and each not in told
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


def _broken(modules: Sequence[Module], raised: Mapping[str, Sequence[int]]) -> Iterator[Target]:
    """Yield the functions in which a statement failed by itself, and was not there to fail."""
    for module in modules:
        for line in raised.get(module.path, ()):
            if line <= len(module.line_starts) and "raise" not in module.lines(line, line).split():
                yield from (Target(module.path, each.name) for each in _around(module, line))


def _evidence(
    sources: Sources, prompt: str, places: Sequence[Frame], failing: Sequence[ast.AST]
) -> Iterator[tuple[Target, float]]:
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
