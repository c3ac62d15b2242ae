"""An evaluation as evidence of how good its models are.

What cannot be told of one model is told of none. An arm in which several models did the work says
nothing of any of them, not even where one trial was the work of one: others are called for where
it is hard, so that those trials would be the easy ones.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256

from turnout.core.govern.evidence import Evaluation, Score
from turnout.core.inference import TaskKind
from turnout.errors import UsageError
from turnout.evals.conditions.model import Conditions, set_digest
from turnout.evals.evidence.doubts import ranking_of, strict_failures, too_few
from turnout.evals.report.counting.members import current, task_set_of
from turnout.evals.report.counting.select import apart, fit, named, newest, unfit_of
from turnout.evals.report.model import Unfit
from turnout.evals.trials.model import Mode, Trial

__all__ = ["Shown", "Wish", "evaluation_of"]

_Task = tuple[str, str]
"""Id and digest of an instance."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked of the results."""

    source: str
    """Where they are from, in words for people."""
    task: TaskKind = "coding"
    """Of the requests that are to be routed by them."""
    mode: Mode | None = None
    """None: the one there is."""
    strict: bool | None = None
    """The same."""
    models: tuple[str, ...] = ()
    """Those alone; empty: all that are told apart."""
    unfit: Sequence[Unfit] = ()
    """Tasks that a check of the set has found to say nothing."""
    conditions: Sequence[Conditions] = ()
    """What the results were made under: they tell what set of tasks these are of."""
    beside: bool = False
    """Whether it is to be ranked beside figures of other sets of tasks."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What results show, and what was left out of it."""

    evaluation: Evaluation
    notes: tuple[str, ...]
    """What was left out and why, and what speaks against it, a sentence each."""
    ranking: str = ""
    """Whether the best model is told apart from the others; empty where there is one only."""
    too_few: str = ""
    """Why its tasks are too few to rank by; empty where they are not. One of the notes."""


@dataclass(slots=True)
class _Sorted:
    """Graded trials by the one model whose work they are."""

    of: dict[str, list[Trial]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def evaluation_of(trials: Sequence[Trial], wish: Wish, now: datetime) -> Shown:
    """Return what trials show of each model that worked alone.

    All models are scored on the same tasks: those that every one of them has a grade for.
    However often a task was tried, it counts once, with the mean of its tries. `UsageError` where
    nothing can be told, or results of different kinds are there and none was asked for.
    """
    rows, outdated = current(wish.conditions, newest(trials))
    kept = _comparable(rows, wish)
    unfit = unfit_of(kept, wish.unfit)
    found = _sorted(fit(kept, unfit))
    if outdated:
        found.notes.append(f"{_tasks(len(outdated))} left out as they were before a change.")
    if unfit:
        found.notes.append(f"{_tasks(len(unfit))} left out: their tests say nothing of a fix.")
    chosen = _chosen(found, wish)
    shares = {model: _shares(own) for model, own in chosen.items()}
    shared = set.intersection(*(set(each) for each in shares.values()))
    every = set().union(*shares.values())
    if not shared:
        raise UsageError(
            f"No task has a grade of each of {', '.join(shares)}.",
            mend="Run the rest (`turnout eval run`), or name models with --model.",
        )
    if len(every) > len(shared):
        left = len(every) - len(shared)
        found.notes.append(f"{_tasks(left)} left out: not every model has a grade there.")
    few = too_few(len(shared))
    found.notes += [each for each in (few, *strict_failures(chosen)) if each]
    scores = tuple(
        Score(model, round(sum(share[task] for task in shared)), len(shared))
        for model, share in sorted(shares.items())
    )
    counted = [t for own in chosen.values() for t in own if _task(t) in shared]
    moments = [trial.started_at for trial in counted if trial.started_at is not None]
    evaluation = Evaluation(
        id=_digest(counted, wish.task),
        task=wish.task,
        mode=kept[0].mode,
        at=max(moments, default=now),
        source=wish.source,
        scores=scores,
        tasks=_set_of(wish.conditions, kept),
        beside=wish.beside,
    )
    return Shown(evaluation, tuple(found.notes), ranking_of(shares, sorted(shared)), few)


def _set_of(conditions: Sequence[Conditions], trials: Sequence[Trial]) -> str:
    """Return the digest of the set that trials of one way are of, run or not."""
    way = (trials[0].mode, trials[0].strict)
    own = [each for each in conditions if (each.mode, each.strict) == way]
    return set_digest(task_set_of(own, trials).members)


def _comparable(trials: Sequence[Trial], wish: Wish) -> list[Trial]:
    """Return the trials that were graded in one way; those of different ways are never mixed."""
    if not trials:
        raise UsageError("There are no results.", mend="`turnout eval run` makes them.")
    groups = [
        group
        for group in apart(trials)
        if wish.mode in {None, group[0].mode} and wish.strict in {None, group[0].strict}
    ]
    match groups:
        case [group]:
            return group
        case []:
            raise UsageError(
                "There are no such results.", mend=f"There are: {_ways(apart(trials))}."
            )
        case _:
            raise UsageError(
                f"Results of different kinds are there, and are never mixed: {_ways(groups)}.",
                mend="Choose with --mode and --strict or --lenient.",
            )


def _ways(groups: Sequence[Sequence[Trial]]) -> str:
    return ", ".join(
        f"{each[0].mode}{', strict' if each[0].strict else ''} ({len(each)})" for each in groups
    )


def _sorted(trials: Sequence[Trial]) -> _Sorted:
    found = _Sorted()
    ungraded = sum(not trial.graded for trial in trials)
    if ungraded:
        found.notes.append(f"{_trials(ungraded)} could not be graded.")
    for arm, own in named([trial for trial in trials if trial.graded]).items():
        # The answer comes after the work, and changes nothing of it.
        workers = {use.model for t in own for use in t.usage if use.kind != "answer"}
        if any(trial.run_id is None for trial in own):
            found.notes.append(f"Arm {arm} says nothing: it was another agent's work.")
        elif not workers:
            found.notes.append(f"Arm {arm} says nothing: no model answered.")
        elif len(workers) > 1:
            names = ", ".join(sorted(workers))
            found.notes.append(f"Arm {arm} says nothing of one model: {names} worked on it.")
        else:
            found.of.setdefault(workers.pop(), []).extend(own)
    return found


def _chosen(found: _Sorted, wish: Wish) -> Mapping[str, list[Trial]]:
    unknown = sorted(set(wish.models) - set(found.of))
    if unknown:
        raise UsageError(
            f"The results show nothing of {unknown[0]!r}.",
            mend=f"They do of {', '.join(sorted(found.of)) or 'no model'}. {' '.join(found.notes)}",
        )
    chosen = {m: own for m, own in found.of.items() if not wish.models or m in wish.models}
    if not chosen:
        raise UsageError(
            "The results show nothing of any one model.",
            mend=f"{' '.join(found.notes)} Run an arm a model: `--arm model:ID`.",
        )
    return chosen


def _shares(trials: Sequence[Trial]) -> Mapping[_Task, float]:
    """Return the share of the tries of each task that resolved it."""
    tries: dict[_Task, list[bool]] = {}
    for trial in trials:
        tries.setdefault(_task(trial), []).append(trial.grade == "resolved")
    return {task: sum(each) / len(each) for task, each in tries.items()}


def _task(trial: Trial) -> _Task:
    return trial.instance_id, trial.instance_digest


def _digest(trials: Sequence[Trial], task: TaskKind) -> str:
    """Return the same for the same trials with the same grades, in whatever order they are."""
    rows = sorted([*_key(trial), task] for trial in trials)
    return sha256(json.dumps(rows).encode()).hexdigest()[:12]


def _key(trial: Trial) -> Iterator[str]:
    yield from (trial.unit.key, trial.run_id or "", trial.grade)


def _tasks(count: int) -> str:
    return "1 task was" if count == 1 else f"{count} tasks were"


def _trials(count: int) -> str:
    return "1 trial" if count == 1 else f"{count} trials"
