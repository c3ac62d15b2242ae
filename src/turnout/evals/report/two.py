"""Two evaluations side by side: what each arm made of the same tasks then and now."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from turnout.errors import UsageError
from turnout.evals.report.figures import summarise
from turnout.evals.report.model import Report
from turnout.evals.trials.model import Trial

__all__ = ["Evaluation", "compare_evaluations"]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The results of one evaluation."""

    name: str
    """What tells it from the other, for people."""
    trials: tuple[Trial, ...]

    @property
    def arms(self) -> tuple[str, ...]:
        """Return the names of its arms, in the order of the results."""
        return tuple(dict.fromkeys(trial.arm for trial in self.trials))

    def label(self, arm: str) -> str:
        """Return the name of an arm of this evaluation beside the other."""
        return f"{arm} in {self.name}"


def compare_evaluations(before: Evaluation, after: Evaluation, arms: Sequence[str] = ()) -> Report:
    """Return a report that compares each arm of `after` with the one of that name in `before`.

    `arms` names those to compare, by default all that both have; where each has a single one,
    these are compared whatever their names. A `UsageError` says that nothing can be.
    """
    if before.name == after.name:
        before, after = replace(before, name="A"), replace(after, name="B")
    pairs = _pairs(before, after, arms)
    rows = [
        replace(trial, arm=side.label(trial.arm))
        for side, names in ((before, {b for _, b in pairs}), (after, {a for a, _ in pairs}))
        for trial in side.trials
        if side.label(trial.arm) in names
    ]
    report = summarise(rows, pairs=pairs)
    if not any(section.comparisons for section in report.sections):
        raise UsageError(
            "These evaluations have no task in common that both have a grade for.",
            mend="They must be of the same rows, in the same mode, equally strict, and each arm "
            "must be one and the same throughout its file.",
        )
    return report


def _pairs(before: Evaluation, after: Evaluation, wished: Sequence[str]) -> list[tuple[str, str]]:
    """Return which arm of `after` is compared with which of `before`, by their labels."""
    common = [arm for arm in after.arms if arm in before.arms]
    missing = [arm for arm in wished if arm not in common]
    if not common and not wished and len(before.arms) == len(after.arms) == 1:
        return [(after.label(after.arms[0]), before.label(before.arms[0]))]
    if missing or not common:
        raise UsageError(
            f"The evaluations have no common arm{f' {missing[0]!r}' if missing else ''}.",
            mend=f"{before.name} has {', '.join(before.arms) or 'none'}; "
            f"{after.name} has {', '.join(after.arms) or 'none'}.",
        )
    return [(after.label(arm), before.label(arm)) for arm in wished or common]
