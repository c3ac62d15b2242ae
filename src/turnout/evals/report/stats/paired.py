"""Whether two arms on the same tasks differ by more than chance would make them."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

__all__ = ["GRAIN", "Significance", "holm", "mcnemar", "sign_flips"]

GRAIN = 60
"""Differences are counted in sixtieths of a task, which is exact for up to six tries of each."""


@dataclass(frozen=True, slots=True)
class Significance:
    """How often chance alone would show a difference at least as large, in either direction."""

    p: float
    """Exact."""
    mid_p: float
    """Differences that are just as large count half; less cautious where tasks are few."""


def mcnemar(only_first: int, only_second: int) -> Significance:
    """Return McNemar's exact test of tasks that only one of two arms resolved."""
    return sign_flips([1.0] * only_first + [-1.0] * only_second)


def sign_flips(differences: Sequence[float]) -> Significance:
    """Return the exact test of paired differences that were as likely to be the other way round.

    One difference for each task, -1 to 1: the share of its tries that the first arm resolved,
    less that of the second. Where each arm tried once it is McNemar's exact test.
    """
    counts = [round(each * GRAIN) for each in differences if round(each * GRAIN)]
    if not counts:
        return Significance(1.0, 1.0)
    unit = gcd(*counts)
    seen = abs(sum(counts)) // unit
    ways = _ways([abs(each) // unit for each in counts])
    reach = len(ways) - 1
    beyond = sum(n for up, n in enumerate(ways) if abs(2 * up - reach) > seen)
    equal = sum(n for up, n in enumerate(ways) if abs(2 * up - reach) == seen)
    choices = 2 ** len(counts)
    return Significance((beyond + equal) / choices, (2 * beyond + equal) / (2 * choices))


def _ways(sizes: Sequence[int]) -> list[int]:
    """Return for each sum, from 0 up, how many choices among `sizes` make it."""
    ways = [1]
    for size in sizes:
        padding = [0] * size
        pairs = zip([*ways, *padding], [*padding, *ways], strict=True)
        ways = [without + taken for without, taken in pairs]
    return ways


def holm(values: Sequence[float]) -> tuple[float, ...]:
    """Return p-values, in their order, as they stand after so many comparisons at once."""
    adjusted = [1.0] * len(values)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=lambda each: values[each])):
        highest = max(highest, min(1.0, (len(values) - rank) * values[place]))
        adjusted[place] = highest
    return tuple(adjusted)
