"""Two arms on the same tasks."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Final

from turnout.evals.report.counting.arms import by_task, spent
from turnout.evals.report.model import Comparison, Ratio
from turnout.evals.report.stats.bootstrap import (
    Bounds,
    Pair,
    by_clusters,
    difference,
    difference_bounds,
    ratio,
    ratio_bounds,
)
from turnout.evals.report.stats.flips import flip_bounds
from turnout.evals.report.stats.paired import holm, sign_flips
from turnout.evals.report.stats.power import Power, smallest_difference
from turnout.evals.trials.model import Trial

__all__ = ["LEVEL", "compare", "comparisons"]

LEVEL: Final = 0.05
"""An adjusted p-value above it shows nothing."""

Measure = Callable[[Trial], float | None]
Tries = tuple[list[Trial], list[Trial]]
"""Of one task under two arms."""

Named = tuple[str, Sequence[Trial]]
"""An arm and its trials."""


def comparisons(pairs: Sequence[tuple[Named, Named]]) -> tuple[Comparison, ...]:
    """Compare the first of each pair with the second; those without a common task are left out."""
    level = LEVEL / max(1, len(pairs))
    found = [(compare(*pair, level), pair) for pair in pairs]
    kept = [(each, pair) for each, pair in found if each is not None]
    adjusted = holm([each.p for each, _ in kept])
    return tuple(
        replace(
            each,
            adjusted_p=value,
            adjusted_bounds=_bounds_of(*pair, LEVEL * each.p / value) if value else each.bounds,
            family=len(kept),
        )
        for (each, pair), value in zip(kept, adjusted, strict=True)
    )


def _bounds_of(arm: Named, reference: Named, level: float) -> Bounds:
    """Return the bounds of a difference at another level."""
    tries = [each for _, each in _common(arm[1], reference[1])]
    return _bounds([pair for each in tries if (pair := _pair(each, _resolved)) is not None], level)


def _bounds(pairs: Sequence[Pair], level: float = LEVEL) -> Bounds:
    """Return bounds of a difference: those of drawing again, and of the exact test beside them.

    The wider ones count. So an interval never denies what the p-value beside it says of few tasks.
    """
    drawn = difference_bounds(pairs, level)
    exact = flip_bounds([pair.first - pair.second for pair in pairs], level)
    if exact is None:
        return drawn
    return Bounds(min(drawn.low, exact.low), max(drawn.high, exact.high))


def compare(arm: Named, reference: Named, level: float = LEVEL) -> Comparison | None:
    """Compare an arm with another; None without a common task.

    `level` is what the exact p-value must reach, for the least difference that could be shown.
    """
    tasks = list(_common(arm[1], reference[1]))
    if not tasks:
        return None
    pairs = [pair for _, tries in tasks if (pair := _pair(tries, _resolved)) is not None]
    gaps = [pair.first - pair.second for pair in pairs]
    test = sign_flips(gaps)
    apart = [name for (name, _), gap in zip(tasks, gaps, strict=True) if gap]
    equal = [pair.first for pair, gap in zip(pairs, gaps, strict=True) if not gap]
    bounds = _bounds(pairs)
    clusters = len({pair.cluster for pair in pairs}) if by_clusters(pairs) else 0
    return Comparison(
        arm=arm[0],
        reference=reference[0],
        tasks=len(tasks),
        both=sum(share > 0 for share in equal),
        only_arm=sum(gap > 0 for gap in gaps),
        only_reference=sum(gap < 0 for gap in gaps),
        neither=sum(share == 0 for share in equal),
        difference=difference(pairs),
        bounds=bounds,
        adjusted_bounds=bounds,
        family=1,
        clusters=clusters,
        p=test.p,
        mid_p=test.mid_p,
        adjusted_p=test.p,
        smallest=smallest_difference(_power(len(tasks), len(apart), level)),
        cost=_ratio(tasks, spent),
        cost_per_resolved=_per_resolved(tasks),
        steps=_ratio(tasks, lambda trial: float(trial.steps)),
        seconds=_ratio(tasks, lambda trial: trial.seconds),
        discordant=tuple(apart),
    )


def _common(arm: Sequence[Trial], reference: Sequence[Trial]) -> Iterator[tuple[str, Tries]]:
    """Yield the tasks that both have a grade for, with the graded tries of both."""
    own, others = (by_task(t for t in trials if t.graded) for trials in (arm, reference))
    for key, tries in own.items():
        if key in others:
            yield key[0], (tries, others[key])


def _resolved(trial: Trial) -> float:
    return float(trial.grade == "resolved")


def _pair(tries: Tries, measure: Measure) -> Pair | None:
    values = [[measure(trial) for trial in each] for each in tries]
    known = [[value for value in each if value is not None] for each in values]
    if [len(each) for each in known] != [len(each) for each in values]:
        return None
    return Pair(fmean(known[0]), fmean(known[1]), tries[0][0].repo)


def _ratio(tasks: Sequence[tuple[str, Tries]], measure: Measure) -> Ratio | None:
    """Return the ratio of totals; None where a task's measure is unknown or nothing was spent."""
    found = [_pair(tries, measure) for _, tries in tasks]
    pairs = [pair for pair in found if pair is not None]
    value = ratio(pairs) if len(pairs) == len(found) else None
    return None if value is None else Ratio(value, ratio_bounds(pairs))


def _per_resolved(tasks: Sequence[tuple[str, Tries]]) -> Ratio | None:
    """Return the ratio of what a resolved task costs; without bounds, as either may resolve few."""
    costs = [_pair(tries, spent) for _, tries in tasks]
    known = [pair for pair in costs if pair is not None]
    solved = [pair for _, tries in tasks if (pair := _pair(tries, _resolved)) is not None]
    first, second = sum(pair.first for pair in solved), sum(pair.second for pair in solved)
    whole = ratio(known) if len(known) == len(costs) else None
    return None if whole is None or not first or not second else Ratio(whole * second / first, None)


def _power(tasks: int, apart: int, level: float) -> Power:
    """Return what the comparison rests on, by how many tasks came out differently so far.

    Two tasks are added to those, half of them different, so that few tasks do not claim to be all
    alike.
    """
    return Power(tasks, (apart + 1) / (tasks + 2), level)
