"""How far a ranking of models can be trusted, in sentences."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Final, TypeVar

from turnout.evals.report.counting.comparing import LEVEL
from turnout.evals.report.stats.paired import holm, sign_flips
from turnout.evals.report.words import p_words, plural
from turnout.evals.trials.model import Trial

__all__ = ["FEWEST_TASKS", "ranking_of", "strict_failures", "too_few"]

FEWEST_TASKS: Final = 10
"""Tasks below which routing does not go by a ranking unless somebody insists."""

Task = TypeVar("Task", bound=Hashable)


def too_few(tasks: int) -> str:
    """Return that so few tasks rank models by chance; empty where there are enough."""
    if tasks >= FEWEST_TASKS:
        return ""
    is_few = "1 task is" if tasks == 1 else f"{tasks} tasks are"
    return f"{is_few} too few to rank models by: with less than {FEWEST_TASKS}, chance decides."


def ranking_of(shares: Mapping[str, Mapping[Task, float]], tasks: Sequence[Task]) -> str:
    """Return whether the best model is told apart from each other one on the same tasks.

    `shares` are the parts of its tries in which a model resolved each task. Empty where there is
    one model only. The test is the exact one of reports, stricter the more models there are.
    """
    if len(shares) < 2:
        return ""
    rates = {model: fmean(own[task] for task in tasks) for model, own in shares.items()}
    best, *others = sorted(rates, key=lambda model: -rates[model])
    tests = [
        sign_flips([shares[best][task] - shares[other][task] for task in tasks]).p
        for other in others
    ]
    found = dict(zip(others, holm(tests), strict=True))
    apart = [f"{other} (p {p_words(p)})" for other, p in found.items() if p <= LEVEL]
    dark = [f"{other} (p {p_words(p)})" for other, p in found.items() if p > LEVEL]
    on = f"On {plural(len(tasks), 'common task')}"
    told = []
    if apart:
        told.append(f"{on} {best} is told apart from {', '.join(apart)}.")
    if dark:
        told.append(
            f"{on} {best} cannot be told apart from {', '.join(dark)}: which of them ranks first "
            "may be chance."
        )
    return " ".join(told)


def strict_failures(chosen: Mapping[str, Sequence[Trial]]) -> Iterator[str]:
    """Yield how many trials of each model count as not solved because tests were changed."""
    for model, own in sorted(chosen.items()):
        failed = sum(trial.grade == "tests_touched" for trial in own)
        if failed:
            yield (
                f"{failed} of {plural(len(own), 'trial')} of {model} failed for a change to tests, "
                "as grading was strict: they count as not solved, whatever the code was worth."
            )
