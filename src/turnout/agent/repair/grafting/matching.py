"""Which definition of which file each definition of a reply is meant to replace."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from turnout.agent.repair.grafting.reply import Block
from turnout.agent.repair.grafting.source import Definition, FunctionNode, Module

__all__ = ["Match", "Target", "match_block", "named"]


@dataclass(frozen=True, slots=True)
class Target:
    """A definition that the failure points at."""

    path: str
    name: str


@dataclass(frozen=True, slots=True)
class Match:
    """A definition of a file, and the one of a reply that is to take its place."""

    module: Module
    old: Definition
    new: ast.stmt
    block: Block
    """Where `new` is from."""

    @property
    def target(self) -> Target:
        """What is replaced."""
        return Target(self.module.path, self.old.name)


def match_block(
    block: Block, modules: Sequence[Module], focus: Sequence[Target]
) -> Iterator[Match]:
    """Yield what `block` defines beside what the files have, classes by their members.

    A block that names its file is looked for there alone.
    """
    hint = block.path
    if hint is not None:
        told = [module for module in modules if f"/{module.path}".endswith(f"/{hint}")]
        modules = told if told or "test" in hint else modules
    for node in block.tree.body:
        for name in named(node):
            found = _find(name, node, block, modules, focus)
            if found is None:
                continue
            if isinstance(node, ast.ClassDef) and not _replaces_whole(found.old.node, node):
                yield from _members(found, node, focus)
            else:
                yield found


def named(node: ast.stmt) -> tuple[str, ...]:
    """Return the name that a definition gives; empty for any other statement."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return (name,)
        case _:
            return ()


def _members(owner: Match, node: ast.ClassDef, focus: Sequence[Target]) -> Iterator[Match]:
    for member in node.body:
        for name in named(member):
            full = f"{owner.old.name}.{name}"
            found = _find(full, member, owner.block, [owner.module], focus)
            if found is not None:
                yield found


def _replaces_whole(old: ast.stmt, new: ast.ClassDef) -> bool:
    """Whether a class leaves out no member and has another head or new members."""
    if not isinstance(old, ast.ClassDef):
        return False
    before = {name for line in old.body for name in named(line)}
    after = {name for line in new.body for name in named(line)}
    return before <= after and (before != after or _head(old) != _head(new))


def _head(node: ast.ClassDef) -> list[str]:
    return [ast.dump(each) for each in (*node.bases, *node.keywords)]


def _find(
    name: str, node: ast.stmt, block: Block, modules: Sequence[Module], focus: Sequence[Target]
) -> Match | None:
    """Return the definition that `node` is to replace: by full name, else a method by its own."""
    fitting = [
        Match(module, old, node, block)
        for module in modules
        for old in module.definitions
        if _same_kind(old.node, node)
    ]
    exact = [match for match in fitting if match.old.name == name]
    nested = [match for match in fitting if match.old.last_name == name]
    found = exact or ([] if isinstance(node, ast.Assign | ast.AnnAssign) else nested)
    return min(found, key=lambda match: _unlikeness(match, focus), default=None)


def _same_kind(old: ast.stmt, new: ast.stmt) -> bool:
    kinds = (FunctionNode, ast.ClassDef, ast.Assign | ast.AnnAssign)
    return any(isinstance(old, kind) and isinstance(new, kind) for kind in kinds)


def _unlikeness(match: Match, focus: Sequence[Target]) -> tuple[bool, int, bool, int]:
    """Order definitions of one name: decorators, suspicion, parameters, the last of a file."""
    old, new = match.old.node, match.new
    rank = focus.index(match.target) if match.target in focus else len(focus)
    parameters = (
        isinstance(old, FunctionNode)
        and isinstance(new, FunctionNode)
        and ast.dump(old.args) != ast.dump(new.args)
    )
    return _decorators(old) != _decorators(new), rank, parameters, -match.old.start


def _decorators(node: ast.stmt) -> list[str]:
    return [ast.dump(each) for each in getattr(node, "decorator_list", [])]
