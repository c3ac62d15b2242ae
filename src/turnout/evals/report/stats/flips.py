"""The interval that belongs to the exact test: it holds 0 just where that test shows nothing."""

from collections.abc import Callable, Sequence
from math import exp, gcd, lgamma, log
from typing import Final

from turnout.evals.report.stats.bootstrap import Bounds
from turnout.evals.report.stats.paired import GRAIN

__all__ = ["flip_bounds"]

_STEPS: Final = 40
_HEAVY: Final = 40_000
"""Sums that are worth adding up, where tasks differ by unequal shares of their tries."""


def flip_bounds(differences: Sequence[float], level: float) -> Bounds | None:
    """Return bounds of the mean of paired differences, -1 to 1, at 1 less `level`.

    Given which tasks come out differently and by how much, each does so in favour of the first
    arm with one unknown probability; the bounds are those between which the test of
    `sign_flips` would not reject it. None where no task does, or where that is too much to compute.
    """
    counts = [round(each * GRAIN) for each in differences if round(each * GRAIN)]
    if not counts:
        return None
    unit = gcd(*counts)
    sizes = [abs(each) // unit for each in counts]
    whole = sum(sizes)
    if set(sizes) != {1} and len(sizes) * whole > _HEAVY:
        return None
    seen = sum(each // unit for each in counts if each > 0)
    scale = whole * unit / GRAIN / len(differences)
    tails = _binomial_tails if set(sizes) == {1} else _summed_tails
    low = _where(lambda p: tails(sizes, seen, p)[0] >= level / 2, 1.0) if seen else 0.0
    high = _where(lambda p: tails(sizes, seen, p)[1] < level / 2, 1.0) if seen < whole else 1.0
    return Bounds((2 * low - 1) * scale, (2 * high - 1) * scale)


def _where(reached: Callable[[float], bool], high: float) -> float:
    """Return the least probability from which on something holds."""
    low = 0.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def _binomial_tails(sizes: Sequence[int], seen: int, p: float) -> tuple[float, float]:
    """Return how likely at least, and at most, `seen` of so many fall to the first."""
    most = len(sizes)
    if p in {0.0, 1.0}:
        return float(p * most >= seen), float(p * most <= seen)
    shares = [_binomial(most, each, p) for each in range(most + 1)]
    return min(1.0, sum(shares[seen:])), min(1.0, sum(shares[: seen + 1]))


def _binomial(most: int, each: int, p: float) -> float:
    ways = lgamma(most + 1) - lgamma(each + 1) - lgamma(most - each + 1)
    return exp(ways + each * log(p) + (most - each) * log(1 - p))


def _summed_tails(sizes: Sequence[int], seen: int, p: float) -> tuple[float, float]:
    """Return the same for sums of unequal sizes."""
    shares = [1.0]
    for size in sizes:
        padding = [0.0] * size
        pairs = zip([*shares, *padding], [*padding, *shares], strict=True)
        shares = [(1 - p) * without + p * taken for without, taken in pairs]
    return min(1.0, sum(shares[seen:])), min(1.0, sum(shares[: seen + 1]))
