"""Which arms resolve most."""

from collections.abc import Sequence
from math import inf

from turnout.evals.report.model import Arm

__all__ = ["leaders"]


def leaders(arms: Sequence[Arm]) -> tuple[Arm, ...]:
    """Return the arms that have a rate, the best first; of equals what a fix costs less by."""
    rated = [(arm.share.rate, arm) for arm in arms if arm.share.rate is not None]
    rated.sort(key=lambda each: (-each[0], _price(each[1])))
    return tuple(arm for _, arm in rated)


def _price(arm: Arm) -> float:
    return inf if arm.cost_per_resolved is None else arm.cost_per_resolved
