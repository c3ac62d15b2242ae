"""What a sandbox shows beside the system."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from turnout.sandbox.bare import BASE_MORE, BASE_TREE, BASE_VENV
from turnout.sandbox.base import REPO, VENV, Mount

__all__ = ["COPY_BASE", "Contents", "Tree", "laid_over"]

_MORE = re.compile(rf"{re.escape(BASE_MORE)}/(\d+)")

COPY_BASE = f"""
set -e
number=0
while [ -d "{BASE_MORE}/$number" ]; do number=$((number + 1)); done
while [ "$number" -gt 0 ]; do
    number=$((number - 1))
    cp -a "{BASE_MORE}/$number/." {REPO}
done
cp -a {BASE_TREE}/. {REPO}
"""
"""Run inside where no tree can be laid over another: modes and times are kept."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A folder inside that a run may change, laid over host folders that it may not."""

    target: str
    below: str
    """Where what lies beneath is shown."""
    lowers: tuple[str, ...]
    """Uppermost first; none: it starts empty."""

    @property
    def name(self) -> str:
        """Its name on the stage."""
        return self.target.strip("/")


@dataclass(frozen=True, slots=True)
class Contents:
    """What a sandbox shows beside the system; without a tree for it the workspace is empty."""

    mounts: tuple[Mount, ...] = ()
    trees: tuple[Tree, ...] = ()
    """Only with a staging of `overlay`."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Read-only files below `FILES_INSIDE`, by name."""


def laid_over(contents: Contents, targets: Sequence[str], layers: Sequence[str] = ()) -> Contents:
    """Let the workspace, `/venv` or both be trees over what the mounts would show of them.

    `layers` are host folders with a `repo` and a `venv` each, uppermost first, which lie between.
    """
    shown = {mount.target: mount.source for mount in contents.mounts if not mount.writable}
    more = [(int(found[1]), target) for target in shown if (found := _MORE.fullmatch(target))]
    beneath = {REPO: (BASE_TREE, *(target for _, target in sorted(more))), VENV: (VENV,)}
    below = {REPO: BASE_TREE, VENV: BASE_VENV}
    trees = []
    for target in targets:
        lowers = [f"{layer}{target}" for layer in layers]
        lowers += [shown[each] for each in beneath[target] if each in shown]
        trees.append(Tree(target, below[target], tuple(lowers)))
    taken = {each for target in targets for each in beneath[target]}
    mounts = tuple(mount for mount in contents.mounts if mount.target not in taken)
    return replace(contents, mounts=mounts, trees=tuple(trees))
