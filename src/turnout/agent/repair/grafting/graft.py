"""A reply of the model put into the files: whole definitions replaced, all else left as it is."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from turnout.agent.repair.grafting.editing import edited
from turnout.agent.repair.grafting.excerpt import Region, replaced
from turnout.agent.repair.grafting.matching import Match, Target, match_block
from turnout.agent.repair.grafting.reply import Block, python_blocks, search_replaces
from turnout.agent.repair.grafting.rewrite import is_elided, is_same
from turnout.agent.repair.grafting.source import Module, parse_text
from turnout.agent.repair.grafting.splice import spliced

__all__ = ["Candidate", "Place", "Rejected", "Rejection", "graft"]

Rejection = Literal["no_code", "unknown", "unchanged", "broken"]
"""no_code: no block parses; unknown: it defines nothing that the files have; unchanged: it repeats
the code; broken: the files would no longer parse."""

_UNCHANGED = "It repeats the code unchanged."


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a reply makes of the files."""

    files: Mapping[str, bytes]
    """New content of every file that changes."""
    changed: tuple[Target, ...]
    """What was replaced; the name is empty for a text that was searched for."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A reply that is not worth a test run."""

    why: Rejection
    text: str
    """One sentence for people."""


@dataclass(frozen=True, slots=True)
class Place:
    """The lines of a definition that a reply is about."""

    target: Target
    region: Region


def graft(
    reply: str,
    modules: Sequence[Module],
    others: Mapping[str, bytes],
    focus: Sequence[Target] = (),
    *,
    cut: bool = False,
    place: Place | None = None,
) -> Candidate | Rejected:
    """Put the definitions of `reply` into `modules`, and its search-and-replace edits into any.

    The first block of a reply about a `place` takes the place of these lines.

    `modules`, `others` and `focus` come most suspected first: of several definitions of one name,
    or places of one text, the first is meant. A reply that was `cut` ends in the middle of a
    statement.
    """
    edits = search_replaces(reply)
    blocks = python_blocks(reply, cut=cut)
    if place is not None and blocks and not edits:
        return _in_place(place, modules, blocks[0])
    parsed = {module.path: module.data for module in modules}
    files = dict(edited({**others, **parsed}, edits))
    broken = [path for path in files if path in parsed and parse_text(files[path]) is None]
    if broken:
        return Rejected("broken", f"{broken[0]} would no longer parse.")
    changed = [Target(path, "") for path in files]
    matches = [match for block in blocks for match in match_block(block, modules, focus)]
    for module in modules:
        fresh = [match for match in matches if match.module is module and _is_worth(match)]
        if not fresh or module.path in files:
            continue
        data = spliced(module, fresh)
        if data is None or parse_text(data) is None:
            return Rejected("broken", f"{module.path} would no longer parse.")
        files[module.path] = data
        changed += [match.target for match in fresh]
    if files:
        return Candidate(files, tuple(dict.fromkeys(changed)))
    if matches:
        return Rejected("unchanged", _UNCHANGED)
    if blocks or edits:
        return Rejected("unknown", "It defines nothing that the files shown have.")
    return Rejected("no_code", "It holds no complete block of code.")


def _in_place(place: Place, modules: Sequence[Module], block: Block) -> Candidate | Rejected:
    module = next(each for each in modules if each.path == place.target.path)
    data = replaced(module, place.region, place.target.name, block)
    tree = None if data is None else parse_text(data)
    if data is None or tree is None:
        return Rejected("broken", f"{module.path} would no longer parse.")
    if ast.dump(tree) == ast.dump(module.tree):
        return Rejected("unchanged", _UNCHANGED)
    return Candidate({module.path: data}, (place.target,))


def _is_worth(match: Match) -> bool:
    return not is_same(match.old.node, match.new) and not (
        is_elided(match.new) and not is_elided(match.old.node)
    )
