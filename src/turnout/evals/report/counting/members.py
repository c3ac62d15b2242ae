"""The set that trials are of: how large it is, and how much of it was tried."""

from collections.abc import Sequence
from dataclasses import dataclass

from turnout.evals.conditions.model import Conditions
from turnout.evals.report.counting.arms import by_task
from turnout.evals.report.model import LeftOut
from turnout.evals.trials.model import Trial

__all__ = ["TaskSetSeen", "current", "task_set_of"]


@dataclass(frozen=True, slots=True)
class TaskSetSeen:
    """A set of tasks, by what commands were to run and by what there are trials of."""

    name: str
    """Of its file; empty: unknown."""
    members: tuple[tuple[str, str], ...]
    """Id and digest of each, those of trials included."""
    left_out: tuple[LeftOut, ...] = ()
    untried: tuple[str, ...] = ()
    planned: int = 0
    """Trials; 0: unknown."""
    done: int = 0


def current(
    conditions: Sequence[Conditions], trials: Sequence[Trial]
) -> tuple[tuple[Trial, ...], tuple[str, ...]]:
    """Return the trials of rows as they are now, and the instances that others are of.

    A row that was changed is another task: the old one beside it would count one bug twice. What
    commands were to run says which is newer; instances of one name in several files are left alone.
    """
    newest: dict[str, str] = {}
    files: dict[str, set[str]] = {}
    for each in conditions:
        newest.update(each.tasks.instances)
        for name, _ in each.tasks.instances:
            files.setdefault(name, set()).add(each.tasks.name)
    plain = {name: digest for name, digest in newest.items() if len(files[name]) == 1}
    old = [t for t in trials if plain.get(t.instance_id, t.instance_digest) != t.instance_digest]
    if not old:
        return tuple(trials), ()
    gone = {(t.instance_id, t.instance_digest) for t in old}
    kept = tuple(t for t in trials if (t.instance_id, t.instance_digest) not in gone)
    return kept, tuple(dict.fromkeys(t.instance_id for t in old))


def task_set_of(conditions: Sequence[Conditions], trials: Sequence[Trial]) -> TaskSetSeen:
    """Return the set of trials of one mode and strictness.

    It is all that their commands were to run; where nothing of that is on record, what was run.
    Of a row that has changed in between the newest form counts, and any other with a trial.
    """
    tried = by_task(trials)
    if not conditions:
        return TaskSetSeen("", tuple(tried))
    newest: dict[str, str] = {}
    left: dict[str, str] = {}
    arms: dict[str, str] = {}
    for each in conditions:
        newest.update(each.tasks.instances)
        for name, _ in each.tasks.instances:
            left.pop(name, None)
        left.update(each.tasks.left_out)
        arms.update((arm.name, arm.digest) for arm in each.arms)
    ids = {name for name, _ in tried}
    repeats = max(each.repeats for each in conditions)
    there = [t for t in trials if newest.get(t.instance_id) == t.instance_digest]
    return TaskSetSeen(
        ", ".join(dict.fromkeys(each.tasks.name for each in conditions)),
        tuple(dict.fromkeys((*newest.items(), *tried))),
        tuple(LeftOut(name, why) for name, why in left.items() if name not in ids),
        tuple(name for name in newest if name not in ids and name not in left),
        repeats * len(arms) * sum(name not in left or name in ids for name in newest),
        sum(arms.get(t.arm) == t.arm_digest for t in there),
    )
