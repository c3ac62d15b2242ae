"""How large a difference a set of tasks can show at all."""

from dataclasses import dataclass
from functools import cache
from math import comb, exp, lgamma, log, sqrt
from typing import Final

__all__ = ["Power", "power", "smallest_difference"]

_USUAL: Final = 0.2
_WANTED: Final = 0.8
_FINEST: Final = 0.005
"""Differences are told to the nearest half point."""
_FAR: Final = 6.0
"""Standard deviations beyond which nothing is added up."""


@dataclass(frozen=True, slots=True)
class Power:
    """What a comparison of two arms on the same tasks rests on."""

    tasks: int
    discordance: float = _USUAL
    """Share of the tasks that come out differently under the two arms."""
    level: float = 0.05
    """Below which a p-value counts as shown."""


def smallest_difference(given: Power) -> float | None:
    """Return the least true difference that the exact test shows four times in five.

    A share, 0 to 1; where it is larger than the discordance, so many tasks come out differently.
    None where not even a difference in every task would be shown.
    """
    if power(given, 1.0) < _WANTED:
        return None
    low, high = 0, round(1 / _FINEST)
    while high - low > 1:
        middle = (low + high) // 2
        if power(given, middle * _FINEST) >= _WANTED:
            high = middle
        else:
            low = middle
    return high * _FINEST


def power(given: Power, difference: float) -> float:
    """Return how often a true difference of this size is shown by the exact test."""
    discordance = min(1.0, max(given.discordance, difference))
    if discordance == 0:
        return 0.0
    favoured = (1 + difference / discordance) / 2
    spread = _FAR * sqrt(given.tasks * discordance * (1 - discordance)) + 1
    middle = given.tasks * discordance
    first, last = max(0, int(middle - spread)), min(given.tasks, int(middle + spread) + 1)
    return sum(
        _binomial(given.tasks, count, discordance) * _shown(count, favoured, given.level)
        for count in range(first, last + 1)
    )


def _shown(count: int, favoured: float, level: float) -> float:
    """Return how often so many tasks of one arm alone or the other alone are told apart."""
    least = _least(count, level)
    if least is None:
        return 0.0
    more = sum(_binomial(count, each, favoured) for each in range(least, count + 1))
    return more + sum(_binomial(count, each, favoured) for each in range(count - least + 1))


@cache
def _least(count: int, level: float) -> int | None:
    """Return the smallest majority of `count` whose exact p-value is within the level."""
    tail, choices = 0, 2**count
    least = None
    for each in range(count, count // 2, -1):
        tail += comb(count, each)
        if 2 * tail > level * choices:
            break
        least = each
    return least


def _binomial(total: int, count: int, share: float) -> float:
    if share in {0.0, 1.0}:
        return float(count == round(total * share))
    ways = lgamma(total + 1) - lgamma(count + 1) - lgamma(total - count + 1)
    return exp(ways + count * log(share) + (total - count) * log(1 - share))
