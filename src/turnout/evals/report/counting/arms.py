"""Figures of one arm."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean, median
from typing import Final

from turnout.core.inference import StepKind
from turnout.core.money import Micros
from turnout.evals.report.counting.advice import Price, warnings_of
from turnout.evals.report.model import Arm, Count, Flips, Group, Kind, ModelShare, Share
from turnout.evals.report.stats.bootstrap import mean_bounds
from turnout.evals.trials.model import KindUsage, Trial
from turnout.gateway.measure.interval import wilson

__all__ = ["arm_of", "by_task", "spent"]

_KINDS: Final[tuple[StepKind, ...]] = ("plan", "act", "summary", "answer", "review")
_DIFFICULTIES: Final = ("1", "2-5", "6-20", ">20")


def arm_of(
    name: str,
    trials: Sequence[Trial],
    lost: Sequence[Trial] = (),
    prices: Mapping[str, Price] | None = None,
) -> Arm:
    """Return the figures of the trials of one arm, at least one.

    `lost` are runs in whose place others have come; what they cost was spent all the same.
    `prices` are those of the models that were there.
    """
    graded = [trial for trial in trials if trial.graded]
    resolved = sum(trial.grade == "resolved" for trial in graded)
    total = _sum(spent(trial) for trial in (*trials, *lost))
    costs = [spent(trial) for trial in graded]
    known = [cost for cost in costs if cost is not None]
    priced = bool(graded) and len(known) == len(costs)
    kinds = tuple(_kinds([usage for trial in trials for usage in trial.usage]))
    return Arm(
        name=name,
        digest=trials[0].arm_digest,
        trials=len(trials),
        graded=len(graded),
        resolved=resolved,
        share=_share(trials),
        rate_of_all=resolved / len(trials),
        median_steps=_median(trial.steps for trial in graded),
        median_seconds=_median(trial.seconds for trial in graded),
        seconds=sum(trial.seconds for trial in trials),
        overhead_seconds=_median(trial.overhead_seconds for trial in graded),
        cost_micros=total,
        cost_per_task=fmean(known) if priced else None,
        cost_bounds=mean_bounds(_task_costs(graded)) if priced else None,
        median_cost=float(median(known)) if priced else None,
        cost_per_resolved=total / resolved if total is not None and resolved else None,
        tool_calls=sum(trial.tool_calls for trial in trials),
        tool_failures=sum(trial.tool_failures for trial in trials),
        repairs=sum(trial.repairs for trial in trials),
        nudges=sum(trial.nudges for trial in trials),
        kinds=kinds,
        grades=_counts(trial.grade for trial in trials),
        outcomes=_counts(trial.outcome or "none" for trial in trials),
        difficulties=_groups(trials, lambda trial: trial.difficulty),
        repositories=_groups(trials, lambda trial: trial.repo),
        flips=_flips(graded),
        warnings=warnings_of(name, kinds, prices),
    )


def by_task(trials: Iterable[Trial]) -> dict[tuple[str, str], list[Trial]]:
    """Return trials by id and digest of their instance."""
    found: dict[tuple[str, str], list[Trial]] = {}
    for trial in trials:
        found.setdefault((trial.instance_id, trial.instance_digest), []).append(trial)
    return found


def spent(trial: Trial) -> Micros | None:
    """Return what a trial cost; nothing where it failed before it began."""
    unbegun = trial.grade == "infrastructure" and trial.run_id is None and not trial.usage
    return Micros(0) if trial.cost_micros is None and unbegun else trial.cost_micros


def _task_costs(graded: Iterable[Trial]) -> list[float]:
    """Return what each task cost in the mean of its tries."""
    costs = [[spent(trial) or 0 for trial in tries] for tries in by_task(graded).values()]
    return [fmean(tries) for tries in costs]


def _share(trials: Iterable[Trial]) -> Share:
    tries = by_task(trial for trial in trials if trial.graded).values()
    shares = [fmean(trial.grade == "resolved" for trial in each) for each in tries]
    rate = fmean(shares) if shares else None
    return Share(len(shares), rate, wilson(rate or 0.0, len(shares)))


def _groups(trials: Sequence[Trial], of: Callable[[Trial], str]) -> tuple[Group, ...]:
    names = {of(trial) for trial in trials} - {""}
    ordered = sorted(names, key=lambda name: (_rank(name), name))
    return tuple(Group(name, _share(t for t in trials if of(t) == name)) for name in ordered)


def _rank(name: str) -> int:
    return _DIFFICULTIES.index(name) if name in _DIFFICULTIES else len(_DIFFICULTIES)


def _flips(graded: Iterable[Trial]) -> Flips:
    repeated = [tries for tries in by_task(graded).values() if len(tries) > 1]
    split = [tries for tries in repeated if len({t.grade == "resolved" for t in tries}) > 1]
    return Flips(len(repeated), len(split))


def _kinds(usages: Sequence[KindUsage]) -> Iterable[Kind]:
    for kind in _KINDS:
        own = [usage for usage in usages if usage.kind == kind]
        if own:
            yield Kind(
                kind,
                sum(usage.calls for usage in own),
                sum(usage.input_tokens for usage in own),
                sum(usage.output_tokens for usage in own),
                sum(usage.cache_read_input_tokens for usage in own),
                _sum(usage.cost_micros for usage in own),
                sum(usage.seconds for usage in own),
                _models(own),
            )


def _models(usages: Sequence[KindUsage]) -> tuple[ModelShare, ...]:
    groups: dict[str, list[KindUsage]] = {}
    for usage in usages:
        groups.setdefault(usage.model, []).append(usage)
    shares = [
        ModelShare(
            model,
            sum(usage.calls for usage in group),
            _sum(usage.cost_micros for usage in group),
        )
        for model, group in groups.items()
    ]
    return tuple(sorted(shares, key=lambda share: (-share.calls, share.model)))


def _sum(costs: Iterable[Micros | None]) -> Micros | None:
    found = list(costs)
    known = [cost for cost in found if cost is not None]
    return Micros(sum(known)) if len(known) == len(found) else None


def _median(values: Iterable[float]) -> float:
    found = list(values)
    return float(median(found)) if found else 0.0


def _counts(names: Iterable[str]) -> tuple[Count, ...]:
    return tuple(Count(name, number) for name, number in Counter(names).most_common())
