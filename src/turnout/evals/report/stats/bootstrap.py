"""How far a paired difference or ratio may be from the true one, by drawing the tasks again."""

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import shake_256
from math import ceil, floor

from turnout.gateway.measure.interval import wilson

__all__ = [
    "Bounds",
    "Pair",
    "by_clusters",
    "difference",
    "difference_bounds",
    "mean_bounds",
    "ratio",
    "ratio_bounds",
]

_RESAMPLES = 2_000
_SEED = b"turnout eval report"
"""Equal trials give equal reports, on every machine."""
_FEWEST_CLUSTERS = 8
"""Repositories from which whole repositories are drawn; of fewer, tasks are."""
_FEWEST = 5
"""Tasks below which drawing them again shows nothing of how far a mean or a ratio may be off."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One measure of one task under two arms."""

    first: float
    second: float
    cluster: str = ""
    """Tasks that are alike, such as those of one repository, share it."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds that hold the true value in about 95 of 100 cases."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class _Totals:
    first: float
    second: float
    count: float


def difference(pairs: Sequence[Pair]) -> float:
    """Return the mean of the first less that of the second; `pairs` must not be empty."""
    return sum(pair.first - pair.second for pair in pairs) / len(pairs)


def ratio(pairs: Sequence[Pair]) -> float | None:
    """Return the sum of the first over that of the second; None where the second is nothing."""
    second = sum(pair.second for pair in pairs)
    return sum(pair.first for pair in pairs) / second if second else None


def difference_bounds(pairs: Sequence[Pair], level: float = 0.05) -> Bounds:
    """Return bounds of the difference of two shares, each 0 to 1, of `pairs`, which has some.

    They fail to hold it in `level` of all cases.
    """
    if len({pair.first - pair.second for pair in pairs}) == 1:
        return _bounds_of_equals(pairs)
    drawn = _drawn(pairs, lambda each: (each.first - each.second) / each.count)
    return _percentiles(drawn, level)


def mean_bounds(values: Sequence[float]) -> Bounds | None:
    """Return bounds of the mean; None where the values are too few to show any."""
    if len(values) < _FEWEST:
        return None
    pairs = [Pair(value, 0.0) for value in values]
    return _percentiles(_drawn(pairs, lambda each: each.first / each.count))


def ratio_bounds(pairs: Sequence[Pair]) -> Bounds | None:
    """Return bounds of the ratio of totals; None where the pairs are too few to show any."""
    if len(pairs) < _FEWEST or not all(pair.second > 0 for pair in pairs):
        return None
    return _percentiles(_drawn(pairs, lambda each: each.first / each.second))


def by_clusters(pairs: Sequence[Pair]) -> bool:
    """Whether whole clusters are drawn, because there are enough of them."""
    return len({pair.cluster for pair in pairs}) >= _FEWEST_CLUSTERS


def _bounds_of_equals(pairs: Sequence[Pair]) -> Bounds:
    """Return bounds where every task shows the same, of which drawing again would make certainty.

    At least the lower bound of the share that was seen, all of them, is as they are; the rest may
    be anything.
    """
    seen = pairs[0].first - pairs[0].second
    share = wilson(1.0, len(pairs)).low
    return Bounds(max(-1.0, seen * share - (1 - share)), min(1.0, seen * share + (1 - share)))


def _drawn(pairs: Sequence[Pair], statistic: Callable[[_Totals], float]) -> list[float]:
    groups = _grouped(pairs)
    first = [each.first for each in groups]
    second = [each.second for each in groups]
    count = [each.count for each in groups]
    return [
        statistic(
            _Totals(
                sum(map(first.__getitem__, places)),
                sum(map(second.__getitem__, places)),
                sum(map(count.__getitem__, places)),
            )
        )
        for places in _places(len(groups))
    ]


def _places(size: int) -> Iterator[list[int]]:
    """Yield for each drawing `size` places below `size`, the same ones for the same size."""
    numbers = array("I")
    numbers.frombytes(shake_256(_SEED).digest(numbers.itemsize * _RESAMPLES * size))
    bits = 8 * numbers.itemsize
    for start in range(0, len(numbers), size):
        yield [number * size >> bits for number in numbers[start : start + size]]


def _grouped(pairs: Sequence[Pair]) -> list[_Totals]:
    if not by_clusters(pairs):
        return [_Totals(pair.first, pair.second, 1.0) for pair in pairs]
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.cluster, []).append(pair)
    return [
        _Totals(sum(p.first for p in group), sum(p.second for p in group), float(len(group)))
        for group in groups.values()
    ]


def _percentiles(values: Sequence[float], level: float = 0.05) -> Bounds:
    ordered, side = sorted(values), level / 2
    return Bounds(ordered[floor(side * len(ordered))], ordered[ceil((1 - side) * len(ordered)) - 1])
