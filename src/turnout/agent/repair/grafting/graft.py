"""A reply of the model put into the files: whole definitions replaced, all else left as it is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from turnout.agent.repair.grafting.editing import edited
from turnout.agent.repair.grafting.matching import Match, Target, match_block
from turnout.agent.repair.grafting.reply import python_blocks, search_replaces
from turnout.agent.repair.grafting.rewrite import is_elided, is_same
from turnout.agent.repair.grafting.source import Module, parse_text
from turnout.agent.repair.grafting.splice import spliced

__all__ = ["Candidate", "Rejected", "Rejection", "graft"]

Rejection = Literal["no_code", "unknown", "unchanged", "broken"]
"""no_code: no block parses; unknown: it defines nothing that the files have; unchanged: it repeats
the code; broken: the files would no longer parse."""


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


def graft(
    reply: str,
    modules: Sequence[Module],
    others: Mapping[str, bytes],
    focus: Sequence[Target] = (),
    *,
    cut: bool = False,
) -> Candidate | Rejected:
    """Put the definitions of `reply` into `modules`, and its search-and-replace edits into any.

    `modules`, `others` and `focus` come most suspected first: of several definitions of one name,
    or places of one text, the first is meant. A reply that was `cut` ends in the middle of a
    statement.
    """
    edits = search_replaces(reply)
    parsed = {module.path: module.data for module in modules}
    files = dict(edited({**others, **parsed}, edits))
    broken = [path for path in files if path in parsed and parse_text(files[path]) is None]
    if broken:
        return Rejected("broken", f"{broken[0]} would no longer parse.")
    changed = [Target(path, "") for path in files]
    blocks = python_blocks(reply, cut=cut)
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
        return Rejected("unchanged", "It repeats the code unchanged.")
    if blocks or edits:
        return Rejected("unknown", "It defines nothing that the files shown have.")
    return Rejected("no_code", "It holds no complete block of code.")


def _is_worth(match: Match) -> bool:
    return not is_same(match.old.node, match.new) and not (
        is_elided(match.new) and not is_elided(match.old.node)
    )
