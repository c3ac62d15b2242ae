"""What tasks say and how they were mended: beside a patch it tells whether that one is any good."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from turnout.evals.instances.model import Instance

__all__ = ["TaskText", "texts_of"]


@dataclass(frozen=True, slots=True)
class TaskText:
    """What a person needs of a task to judge a patch."""

    statement: str
    tests: tuple[str, ...]
    """Those that must pass; where none is named, the files that hold them."""
    patch: str
    """The fix that is known; empty where none is."""


def texts_of(instances: Iterable[Instance]) -> Mapping[tuple[str, str], TaskText]:
    """Return the texts of instances by id and digest."""
    return {
        (each.instance_id, each.digest): TaskText(
            each.problem_statement, each.fail_to_pass or tuple(each.hidden_tests), each.patch
        )
        for each in instances
    }
