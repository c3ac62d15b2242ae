"""Numbers and findings in words, the same in every form of a report."""

from collections.abc import Iterator

from turnout.core.money import Micros, format_usd
from turnout.evals.report.counting.comparing import LEVEL
from turnout.evals.report.model import Arm, Comparison, Ratio, Section, Share

__all__ = [
    "finding",
    "mode_words",
    "p_words",
    "percent",
    "plural",
    "points",
    "range_words",
    "ratio_words",
    "remarks",
    "seconds_words",
    "shown_apart",
    "usd",
]

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


def shown_apart(comparison: Comparison) -> bool:
    """Whether the difference of two rates is more than chance would make it."""
    return comparison.adjusted_p <= LEVEL


def finding(comparison: Comparison) -> str:
    """Return what a comparison shows, and where it shows nothing, how much it could have shown."""
    low, high = points(comparison.bounds.low), points(comparison.bounds.high)
    gap = f"{points(comparison.difference)} points (95 % interval {low} to {high})"
    tested = f"p {p_words(comparison.adjusted_p)}, {plural(comparison.tasks, 'task')}"
    arm, reference = comparison.arm, comparison.reference
    if shown_apart(comparison):
        more = "more" if comparison.difference > 0 else "fewer"
        told = f"{arm} resolves {more} than {reference}: {gap}, {tested}."
    else:
        told = f"{arm} and {reference} cannot be told apart by their rates: {gap}, {tested}."
        told = f"{told} {_reach(comparison)}"
    if comparison.cost is None:
        return told
    return f"{told} {_cost(comparison, comparison.cost)}"


def _cost(comparison: Comparison, ratio: Ratio) -> str:
    told = f"{comparison.arm} costs {ratio.value:.2f} times what {comparison.reference} does"
    if ratio.bounds is None:
        return f"{told}."
    return f"{told} (95 % interval {ratio.bounds.low:.2f} to {ratio.bounds.high:.2f})."


def _reach(comparison: Comparison) -> str:
    if comparison.smallest is None:
        return (
            f"The sample is too small: {plural(comparison.tasks, 'task')} cannot tell any two "
            "arms apart."
        )
    return (
        f"With {plural(comparison.tasks, 'task')} a gap under about "
        f"{round(100 * comparison.smallest)} points cannot be told from chance."
    )


def remarks(section: Section) -> tuple[str, ...]:
    """Return what a reader of the figures must know, a sentence each."""
    found = [finding(each) for each in section.comparisons]
    for arm in section.arms:
        found += _arm_remarks(arm)
    found += _missing(section)
    if section.unfit:
        found.append(
            f"{len(section.unfit)} of {plural(section.instances, 'task')} say nothing of a fix, "
            "left out of every rate."
        )
    return tuple(found)


def _arm_remarks(arm: Arm) -> Iterator[str]:
    share = arm.share
    if share.tasks and share.interval.high - share.interval.low > _WIDE:
        yield (
            f"{arm.name}: {plural(share.tasks, 'task')} are few; the true rate may lie anywhere "
            f"from {range_words(share)}."
        )
    if arm.graded < arm.trials:
        lost = plural(arm.trials - arm.graded, "trial")
        yield f"{arm.name}: {lost} could not be graded, left out of every rate."
    if arm.flips.flipped:
        yield (
            f"{arm.name}: {arm.flips.flipped} of {plural(arm.flips.tasks, 'repeated task')} came "
            "out differently from try to try."
        )
    yield from (f"{arm.name}: {warning}" for warning in arm.warnings)


def _missing(section: Section) -> Iterator[str]:
    """Yield what was not run; once for all arms where it is the same number."""
    size = section.instances - len(section.unfit)
    missing = {arm.name: size - _seen(arm, section) for arm in section.arms}
    if len(set(missing.values())) == 1:
        missing = {"All arms" if len(missing) > 1 else name: n for name, n in missing.items()}
    for name, number in missing.items():
        if number > 0:
            yield f"{name}: {number} of {section.instances} instances not run."


def _seen(arm: Arm, section: Section) -> int:
    """Return how many fit tasks an arm has a result for."""
    unfit = {(each.instance_id, each.digest) for each in section.unfit}
    tried = [task for task in section.tasks if task.of(arm.name) is not None]
    return sum((task.instance_id, task.digest) not in unfit for task in tried)
