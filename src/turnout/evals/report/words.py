"""Numbers and findings in words, the same in every form of a report."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from turnout.core.money import Micros, format_usd
from turnout.evals.report.counting.best import leaders
from turnout.evals.report.counting.comparing import LEVEL
from turnout.evals.report.model import Arm, Comparison, Ratio, Section, Share

__all__ = [
    "finding",
    "mode_words",
    "outdated_words",
    "p_words",
    "percent",
    "plural",
    "points",
    "range_words",
    "ratio_words",
    "remarks",
    "seconds_words",
    "set_words",
    "shown_apart",
    "usd",
]

_SHOWN = 3
_WIDE = 0.3
"""Width of a rate's interval from which on the sample is called small."""


def plural(number: int, word: str) -> str:
    """Return `1 task`, `2 tasks`."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def percent(share: float | None) -> str:
    """Return a share as a whole percentage."""
    return "-" if share is None else f"{share:.0%}"


def range_words(share: Share) -> str:
    """Return the interval of a rate."""
    return f"{share.interval.low:.0%} to {share.interval.high:.0%}"


def points(difference: float) -> str:
    """Return a difference of two rates in percentage points, with its sign."""
    value = round(100 * difference)
    return f"{value:+d}" if value else "0"


def usd(micros: float | None) -> str:
    """Return an amount; `unpriced` where a price is unknown."""
    return "unpriced" if micros is None else format_usd(Micros(round(micros)))


def seconds_words(seconds: float) -> str:
    """Return a time to the second, tenths below ten."""
    return f"{seconds:.1f} s" if 0 < seconds < 10 else f"{seconds:,.0f} s"


def ratio_words(ratio: Ratio | None) -> str:
    """Return a ratio of totals with its bounds."""
    if ratio is None:
        return "-"
    if ratio.bounds is None:
        return f"{ratio.value:.2f}"
    return f"{ratio.value:.2f} ({ratio.bounds.low:.2f} to {ratio.bounds.high:.2f})"


def p_words(p: float) -> str:
    """Return a p-value as far as it is worth telling."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def mode_words(section: Section) -> str:
    """Return how the trials of a section were made."""
    tests = "hidden until grading" if section.mode == "hidden" else "visible to the agent"
    changes = "fails the trial" if section.strict else "is left out before grading"
    return f"Tests {tests}; a change to existing tests {changes}."


def set_words(section: Section) -> str:
    """Return how much of which set was tried."""
    tried, size = len(section.tasks), section.instances
    told = plural(size, "instance") if tried >= size else f"{tried} of {plural(size, 'instance')}"
    tries = "" if tried >= size else " tried"
    name = f" ({section.facts.set_name})" if section.facts.set_name else ""
    return f"{told}{tries}, set {section.facts.set_digest}{name}"


def shown_apart(comparison: Comparison) -> bool:
    """Whether the difference of two rates is more than chance would make it.

    Both the exact test and the interval must say so, which takes whole repositories for one.
    """
    bounds = comparison.adjusted_bounds
    return comparison.adjusted_p <= LEVEL and not bounds.low <= 0 <= bounds.high


def finding(comparison: Comparison) -> str:
    """Return what a comparison shows, and where it shows nothing, how much it could have shown.

    Interval and p are those after all comparisons, so that they say the same.
    """
    low, high = points(comparison.adjusted_bounds.low), points(comparison.adjusted_bounds.high)
    after = f" after {comparison.family} comparisons" if comparison.family > 1 else ""
    gap = (
        f"{points(comparison.difference)} points on {plural(comparison.tasks, 'task')} "
        f"(95 % interval {low} to {high}, p {p_words(comparison.adjusted_p)}{after})"
    )
    arm, reference = comparison.arm, comparison.reference
    if shown_apart(comparison):
        more = "more" if comparison.difference > 0 else "fewer"
        told = f"{arm} resolves {more} than {reference}: {gap}."
    else:
        told = f"{arm} and {reference} cannot be told apart by their rates: {gap}."
        told = f"{told} {_reach(comparison)}"
    if comparison.cost is None:
        return told
    return f"{told} {_cost(comparison, comparison.cost)}"


def _cost(comparison: Comparison, ratio: Ratio) -> str:
    told = f"{comparison.arm} costs {ratio.value:.2f} times what {comparison.reference} does a task"
    if ratio.bounds is not None:
        told += f" (95 % interval {ratio.bounds.low:.2f} to {ratio.bounds.high:.2f})"
    if (fix := comparison.cost_per_resolved) is None:
        return f"{told}."
    return f"{told}, and {fix.value:.2f} times a resolved task."


def _reach(comparison: Comparison) -> str:
    if comparison.smallest is None:
        return (
            f"The sample is too small: {plural(comparison.tasks, 'task')} cannot tell any two "
            "arms apart."
        )
    return (
        f"With {plural(comparison.tasks, 'task')} a true gap under about "
        f"{round(100 * comparison.smallest)} points would often go unseen."
    )


def remarks(section: Section) -> tuple[str, ...]:
    """Return what a reader of the figures must know, a sentence or two each, what matters first.

    There is at most one of a kind: what is so of several arms is told of them together.
    """
    found = [*_best(section), *_findings(section)]
    found += _arm_remarks(section.arms)
    found += _of_other_tasks(section)
    found += _missing(section)
    found += _unfinished(section)
    if section.unfit:
        found.append(
            f"{len(section.unfit)} of {plural(section.instances, 'task')} say nothing of a fix, "
            "left out of every rate."
        )
    return tuple(found)


def _best(section: Section) -> Iterator[str]:
    """Yield which arm resolves most, and which comes next."""
    best = leaders(section.arms)
    if len(best) < 2:
        return
    if not best[0].resolved:
        yield "No arm has resolved a task: nothing tells which is better."
    elif best[0].share.rate == best[1].share.rate:
        first = [arm for arm in best if arm.share.rate == best[0].share.rate]
        yield f"Equally many resolved, and most: {'; '.join(map(_standing, first))}."
    else:
        yield f"Most resolved: {_standing(best[0])}. Next: {_standing(best[1])}."


def _standing(arm: Arm) -> str:
    if not arm.resolved:
        return f"{arm.name}, none of {arm.graded}"
    told = f"{arm.name}, {arm.resolved} of {arm.graded} ({percent(arm.share.rate)})"
    return told if not arm.cost_per_resolved else f"{told}, {usd(arm.cost_per_resolved)} each"


def _findings(section: Section) -> Iterator[str]:
    """Yield what each comparison shows; those that show nothing together, but for the first."""
    best = {arm.name for arm in leaders(section.arms)[:2]}
    first = [c for c in section.comparisons if {c.arm, c.reference} == best]
    others = [c for c in section.comparisons if c not in first]
    dark = [c for c in others if not shown_apart(c)]
    if len(dark) < 2:
        yield from map(finding, (*first, *others))
        return
    yield from map(finding, (*first, *(c for c in others if c not in dark)))
    told = "; ".join(
        f"{arm} from {_listed([c for c in dark if c.arm == arm])}"
        for arm in dict.fromkeys(c.arm for c in dark)
    )
    reach = _reach(min(dark, key=lambda c: c.tasks))
    known = any(reach in finding(c) for c in first)
    yield (
        f"Cannot be told apart by their rates: {told}. {'' if known else f'{reach} '}"
        "Intervals and p-values are in the table of pairs."
    )


def _listed(comparisons: Sequence[Comparison]) -> str:
    each = [f"{c.reference} ({points(c.difference)} points)" for c in comparisons]
    return each[0] if len(each) == 1 else f"{', '.join(each[:-1])} and {each[-1]}"


def _arm_remarks(arms: Sequence[Arm]) -> Iterator[str]:
    few = [
        arm
        for arm in arms
        if arm.share.tasks and arm.share.interval.high - arm.share.interval.low > _WIDE
    ]
    if few:
        least = min(arm.share.tasks for arm in few)
        is_few = "1 task is too few" if least == 1 else f"{least} tasks are few"
        yield (
            f"{is_few}: the true rates may lie anywhere in their intervals "
            f"({_of_each(few, lambda arm: range_words(arm.share))})."
        )
    if lost := [arm for arm in arms if arm.graded < arm.trials]:
        each = _of_each(lost, lambda arm: plural(arm.trials - arm.graded, "trial"))
        yield f"Could not be graded, left out of every rate: {each}."
    if flipped := [arm for arm in arms if arm.flips.flipped]:
        each = _of_each(flipped, lambda arm: f"{arm.flips.flipped} of {arm.flips.tasks}")
        yield f"Repeated tasks that came out differently from try to try: {each}."
    for about in dict.fromkeys(advice.about for arm in arms for advice in arm.warnings):
        texts: dict[str, list[str]] = {}
        for arm in arms:
            for advice in arm.warnings:
                if advice.about == about:
                    texts.setdefault(advice.text, []).append(arm.name)
        yield f"{about}. {_of_several(texts)}"


def _of_several(texts: Mapping[str, Sequence[str]]) -> str:
    """Return what is said of arms, each text once after the names that it is said of."""
    return " ".join(f"{', '.join(names)}: {text}" for text, names in texts.items())


def _of_each(arms: Sequence[Arm], words: Callable[[Arm], str]) -> str:
    return ", ".join(f"{arm.name} {words(arm)}" for arm in arms)


def _of_other_tasks(section: Section) -> Iterator[str]:
    """Yield that arms were graded on different tasks, where that is so."""
    graded = {
        arm.name: {
            (task.instance_id, task.digest)
            for task in section.tasks
            if (made := task.of(arm.name)) is not None and made.tries
        }
        for arm in section.arms
    }
    known = [tasks for tasks in graded.values() if tasks]
    if any(tasks != known[0] for tasks in known[1:]):
        each = ", ".join(f"{name} {len(tasks)}" for name, tasks in graded.items())
        common = plural(len(set.intersection(*known)), "task")
        yield (
            f"The rates of the table are of different tasks ({each}; {common} in common): compare "
            "arms by the pairs alone."
        )


def _unfinished(section: Section) -> Iterator[str]:
    """Yield what the set is short of, and what is still to be done."""
    if section.left_out:
        each = "; ".join(f"{one.instance_id}: {one.reason}" for one in section.left_out[:_SHOWN])
        more = len(section.left_out) - _SHOWN
        yield (
            f"{len(section.left_out)} of {plural(section.instances, 'instance')} left out before "
            f"any trial ({each}{f'; and {more} more' if more > 0 else ''})."
        )
    if section.done < section.planned:
        left = section.planned - section.done
        yield (
            f"Unfinished: {left:,} of {plural(section.planned, 'trial')} are not done; the same "
            "command goes on."
        )


def _missing(section: Section) -> Iterator[str]:
    """Yield what was not run, of all arms together where it is the same number."""
    size = section.instances - len(section.unfit) - len(section.left_out)
    missing = {arm.name: size - _seen(arm, section) for arm in section.arms}
    if len(missing) > 1 and len(set(missing.values())) == 1:
        missing = {"All arms": max(missing.values())}
    missing = {name: number for name, number in missing.items() if number > 0}
    if not missing:
        return
    each = ", ".join(f"{name} {number}" for name, number in missing.items())
    names = f"; no arm has tried {_some(section.untried)}" if section.untried else ""
    yield f"Not run, of {plural(section.instances, 'instance')}: {each}{names}."


def outdated_words(names: Sequence[str]) -> str:
    """Return that results of rows as they were before a change are left out; some are named."""
    rows = "a row that was" if len(names) == 1 else f"{len(names)} rows that were"
    return f"Results of {rows} changed since are left out, those before the change: {_some(names)}."


def _some(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _seen(arm: Arm, section: Section) -> int:
    """Return how many fit tasks an arm has a result for."""
    unfit = {(each.instance_id, each.digest) for each in section.unfit}
    tried = [task for task in section.tasks if task.of(arm.name) is not None]
    return sum((task.instance_id, task.digest) not in unfit for task in tried)
