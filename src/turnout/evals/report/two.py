"""Two evaluations side by side: what each arm made of the same tasks then and now."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from turnout.errors import UsageError
from turnout.evals.conditions.model import Conditions
from turnout.evals.report.counting.arms import by_task
from turnout.evals.report.counting.members import current
from turnout.evals.report.counting.select import newest
from turnout.evals.report.figures import summarise
from turnout.evals.report.model import Report
from turnout.evals.report.words import outdated_words, plural
from turnout.evals.trials.model import Trial

__all__ = ["Evaluation", "compare_evaluations"]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The results of one evaluation."""

    name: str
    """What tells it from the other, for people."""
    trials: tuple[Trial, ...]
    conditions: tuple[Conditions, ...] = ()
    """What its commands ran under: they say which form of a row is the newest."""

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
    (before, old), (after, older) = _as_they_are_now(before), _as_they_are_now(after)
    before, after, note = _in_both(before, after)
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
    told = tuple(filter(None, (*report.notes, old, older, note)))
    return replace(report, notes=told)


def _as_they_are_now(evaluation: Evaluation) -> tuple[Evaluation, str]:
    """Return an evaluation without results of rows that were changed since, and what these were."""
    kept, outdated = current(evaluation.conditions, newest(evaluation.trials))
    if not outdated:
        return evaluation, ""
    changed = set(newest(evaluation.trials)) - set(kept)
    own = tuple(
        trial
        for trial in evaluation.trials
        if (trial.instance_id, trial.instance_digest)
        not in {(each.instance_id, each.instance_digest) for each in changed}
    )
    return replace(evaluation, trials=own), f"{outdated_words(outdated)} ({evaluation.name})"


def _in_both(before: Evaluation, after: Evaluation) -> tuple[Evaluation, Evaluation, str]:
    """Return both without the tasks that only one of them has tried, and how many these were.

    Rates of different tasks beside each other would say nothing.
    """
    own, others = (set(by_task(each.trials)) for each in (before, after))
    both = own & others
    if own == others or not both:
        return before, after, ""
    told = (
        f"Of different sets of tasks: {plural(len(both), 'task')} in both, which alone are "
        f"compared; left out are {len(own - both)} of {before.name} and "
        f"{len(others - both)} of {after.name}."
    )
    return _only(before, both), _only(after, both), told


def _only(evaluation: Evaluation, tasks: AbstractSet[tuple[str, str]]) -> Evaluation:
    kept = (t for t in evaluation.trials if (t.instance_id, t.instance_digest) in tasks)
    return replace(evaluation, trials=tuple(kept))


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
