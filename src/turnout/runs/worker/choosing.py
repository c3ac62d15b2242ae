"""Which of several attempts is the result of a run, by our own tests."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from turnout.core.events import LoopEnded, Reviewed
from turnout.core.runs import Patch, Verdict
from turnout.runs.worker.judging import Closing

__all__ = ["Tried", "best", "is_accepted"]

_STOPPED: Final = frozenset({"cancelled", "capped", "refused"})


@dataclass(frozen=True, slots=True)
class Tried:
    """An attempt that has ended, and what our tests and the review say of it."""

    number: int
    end: LoopEnded
    patch: Patch
    closing: Closing
    verdict: Verdict
    review: Reviewed | None = None
    """None where none was asked for, or where the tests had refused the patch already."""

    @property
    def stopped(self) -> bool:
        """Whether what ended it ends the run."""
        return self.end.outcome in _STOPPED

    @property
    def blocked(self) -> bool:
        """Whether the review holds that the patch must not be taken."""
        return self.review is not None and self.review.blocked


def is_accepted(tried: Tried) -> bool:
    """Whether no further attempt is needed.

    Where no test failed before, passing tests do not say that the task is done: the model must.
    """
    if not tried.patch or tried.blocked:
        return False
    match tried.verdict.name:
        case "resolved":
            return True
        case "no_regression" | "no_tests":
            return tried.end.outcome == "answered"
        case "not_resolved" | "tests_touched":
            return False


def best(tried: Sequence[Tried]) -> tuple[Tried, str]:
    """Return the best attempt and why; of equal ones the first."""
    chosen = max(tried, key=_standing)
    failing = len(_failing(chosen))
    if is_accepted(chosen):
        return chosen, "Our tests accept it."
    if not chosen.patch:
        return chosen, "No attempt changed anything."
    if chosen.blocked:
        return chosen, "Our tests accept it, and the review blocks every such attempt."
    if chosen.verdict.name == "not_resolved" and chosen.closing.report is not None:
        fail = "1 test fails" if failing == 1 else f"{failing} tests fail"
        return chosen, f"None was accepted; {fail} with it, with no other fewer."
    return chosen, "None was accepted; this one is nearest."


def _standing(tried: Tried) -> tuple[int, int]:
    if not tried.patch:
        return 0, 0
    if is_accepted(tried):
        return 4, 0
    match tried.verdict.name:
        case "resolved" | "no_regression" | "no_tests":
            return 3, 0
        case "not_resolved" if tried.closing.report is not None:
            return 2, -len(_failing(tried))
        case _:
            return 1, 0


def _failing(tried: Tried) -> Sequence[str]:
    report = tried.closing.report
    return () if report is None else report.failed
