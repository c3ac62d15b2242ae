"""What arms are set against: what they cost, or where nothing has a price, the time they took."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import fmean

from turnout.evals.report.counting.arms import spent
from turnout.evals.report.model import Arm, ArmResult, Section
from turnout.evals.report.stats.bootstrap import Bounds
from turnout.evals.report.words import seconds_words, usd
from turnout.evals.trials.model import Trial

__all__ = ["Measure", "measure_of"]


@dataclass(frozen=True, slots=True)
class Measure:
    """One way to count what trials took."""

    name: str
    words: Callable[[float], str]
    of_trial: Callable[[Trial], float | None]
    of_arm: Callable[[Arm], float | None]
    """Of one task, typically."""
    bounds: Callable[[Arm], Bounds | None]

    def of_task(self, result: ArmResult | None) -> float | None:
        """Return the mean of the tries that could be graded; None where one is unknown."""
        tries = [each for each in result.trials if each.graded] if result else []
        known = list(_known(self.of_trial(each) for each in tries))
        return fmean(known) if known and len(known) == len(tries) else None


def _known(values: Iterable[float | None]) -> Iterable[float]:
    return (value for value in values if value is not None)


def measure_of(section: Section) -> Measure:
    """Return cost where any arm had to pay, else time."""
    if any(arm.cost_micros for arm in section.arms):
        return Measure("Cost", usd, spent, lambda arm: arm.cost_per_task, lambda a: a.cost_bounds)
    return Measure(
        "Time",
        seconds_words,
        lambda trial: trial.seconds,
        lambda arm: arm.median_seconds if arm.graded else None,
        lambda _: None,
    )
