"""From trials to the figures of a report."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from turnout.evals.conditions.model import Conditions, set_digest
from turnout.evals.report.counting.advice import prices_of
from turnout.evals.report.counting.arms import arm_of, by_task
from turnout.evals.report.counting.best import leaders
from turnout.evals.report.counting.comparing import comparisons
from turnout.evals.report.counting.members import TaskSetSeen, current, task_set_of
from turnout.evals.report.counting.select import (
    apart,
    fit,
    named,
    newest,
    ordered,
    replaced,
    unfit_of,
)
from turnout.evals.report.model import (
    Arm,
    ArmResult,
    Facts,
    InstanceResults,
    Report,
    Section,
    SetCheck,
)
from turnout.evals.report.words import outdated_words
from turnout.evals.trials.model import Mode, Trial, Unit

__all__ = ["summarise"]


def summarise(
    trials: Sequence[Trial],
    *,
    instances: int | None = None,
    conditions: Sequence[Conditions] = (),
    arm: str | None = None,
    check: SetCheck | None = None,
    pairs: Sequence[tuple[str, str]] = (),
) -> Report:
    """Return the report of `trials`, oldest first, of which the newest of each unit counts.

    `instances` is the size of the set that they are of; by default it is that of the `conditions`
    that they were run under, else those with a trial.
    `arm` names the one that is compared with every other; by default `auto`, else the first.
    `check` is what was found of the tasks themselves; those that are not fit are in no rate.
    `pairs` are the arms to compare, in place of one with every other.
    """
    wanted = _Wanted(
        instances or 0,
        check or SetCheck(0, ()),
        tuple(pairs),
        replaced(trials),
        tuple(conditions),
    )
    kept, outdated = current(conditions, newest(trials))
    order = list(dict.fromkeys(each.name for c in conditions for each in c.arms))
    sections = [_section(ordered(named(own, order), arm), wanted) for own in apart(kept)]
    notes = (outdated_words(outdated),) if outdated else ()
    return Report(tuple(sections), tuple(trials), tuple(conditions), notes)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a section is made with, beside its trials."""

    instances: int
    check: SetCheck
    pairs: tuple[tuple[str, str], ...]
    lost: Mapping[Unit, Sequence[Trial]]
    """Runs in whose place others have come."""
    conditions: tuple[Conditions, ...]


def _section(groups: dict[str, list[Trial]], wanted: _Wanted) -> Section:
    trials = [trial for own in groups.values() for trial in own]
    unfit = unfit_of(trials, wanted.check.unfit)
    fits = {name: kept for name, own in groups.items() if (kept := fit(own, unfit))}
    own = [c for c in wanted.conditions if (c.mode, c.strict) == _way(trials)]
    prices = prices_of(own)
    arms = tuple(
        arm_of(
            name, kept, [lost for trial in kept for lost in wanted.lost.get(trial.unit, ())], prices
        )
        for name, kept in fits.items()
    )
    first, *others = fits or [""]
    pairs = wanted.pairs or _with_leaders(arms, [(first, other) for other in others])
    tasks = task_set_of(own, trials)
    return Section(
        mode=trials[0].mode,
        strict=trials[0].strict,
        instances=max(wanted.instances, len(tasks.members)),
        left_out=tasks.left_out,
        untried=tasks.untried,
        planned=tasks.planned,
        done=tasks.done,
        facts=_facts(trials, tasks),
        conditions=tuple(own),
        arms=arms,
        comparisons=comparisons(
            [((a, fits[a]), (b, fits[b])) for a, b in pairs if a in fits and b in fits]
        ),
        frontier=_frontier(arms),
        checked=wanted.check.tasks,
        unfit=unfit,
        tasks=tuple(_tasks(groups)),
    )


def _with_leaders(
    arms: Sequence[Arm], pairs: Sequence[tuple[str, str]]
) -> Sequence[tuple[str, str]]:
    """Return pairs with the two best arms among them, first, where they are not there yet."""
    best = leaders(arms)
    if len(best) < 2:
        return pairs
    pair = (best[0].name, best[1].name)
    return pairs if pair in pairs or pair[::-1] in pairs else [pair, *pairs]


def _way(trials: Sequence[Trial]) -> tuple[Mode, bool]:
    return trials[0].mode, trials[0].strict


def _facts(trials: Sequence[Trial], tasks: TaskSetSeen) -> Facts:
    moments = [trial.started_at for trial in trials if trial.started_at is not None]
    return Facts(
        set_digest=set_digest(tasks.members),
        set_name=tasks.name,
        harness=_distinct(trial.harness for trial in trials),
        environments=_distinct(trial.environment for trial in trials),
        models=_distinct(model for trial in trials for model in trial.models),
        first=min(moments, default=None),
        last=max(moments, default=None),
    )


def _distinct(values: Iterator[str]) -> tuple[str, ...]:
    return tuple(sorted(set(values) - {""}))


def _frontier(arms: Sequence[Arm]) -> tuple[str, ...]:
    """Return the arms that none beats in cost and rate; unknown costs are not among them."""
    points = [
        (arm.cost_per_task, -arm.share.rate, arm.name)
        for arm in arms
        if arm.cost_per_task is not None and arm.share.rate is not None
    ]
    kept: list[str] = []
    least = 1.0
    for _, missed, name in sorted(points):
        if not kept or missed < least:
            kept.append(name)
            least = missed
    return tuple(kept)


def _tasks(groups: dict[str, list[Trial]]) -> Iterator[InstanceResults]:
    tries = {name: by_task(own) for name, own in groups.items()}
    keys = dict.fromkeys(key for each in tries.values() for key in each)
    for key in keys:
        found = {name: each[key] for name, each in tries.items() if key in each}
        own = [trial for each in found.values() for trial in each]
        yield InstanceResults(
            *key,
            _told(trial.title for trial in own),
            _told(trial.repo for trial in own),
            _told(trial.difficulty for trial in own),
            tuple(_result(name, each) for name, each in found.items()),
        )


def _told(values: Iterator[str]) -> str:
    """Return the first that says something: older rows do not."""
    return next((value for value in values if value), "")


def _result(arm: str, trials: Sequence[Trial]) -> ArmResult:
    graded = [trial for trial in trials if trial.graded]
    resolved = sum(trial.grade == "resolved" for trial in graded)
    return ArmResult(arm, len(graded), resolved, tuple(trials))
