"""How far a rate that was seen may be from the true one; the router and reports use the same."""

from dataclasses import dataclass
from math import sqrt

__all__ = ["Interval", "wilson"]

_Z = 1.959963984540054
"""Standard deviations of a two-sided 95 % interval."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Bounds of a rate, 0 to 1, that hold the true one in 95 of 100 cases."""

    low: float
    high: float


def wilson(rate: float, total: int) -> Interval:
    """Return the Wilson score interval at 95 % of a rate seen in `total` observations.

    Without an observation it is all of 0 to 1. The rate itself always lies inside.
    """
    if total == 0:
        return Interval(0.0, 1.0)
    square = _Z * _Z
    centre = (rate + square / (2 * total)) / (1 + square / total)
    spread = rate * (1 - rate) / total + square / (4 * total * total)
    half = _Z * sqrt(spread) / (1 + square / total)
    # Rounding alone would put the bounds of 0 and of 1 beyond the rate.
    return Interval(min(rate, max(0.0, centre - half)), max(rate, min(1.0, centre + half)))
