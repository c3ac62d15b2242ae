"""From values to places on a plot, and the values that its axes name."""

from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Final, Literal

__all__ = ["Scale", "linear", "logarithmic", "suited"]

_WIDE: Final = 12
"""Largest over smallest value from which on a logarithm shows more."""
_MOST_TICKS: Final = 6


@dataclass(frozen=True, slots=True)
class Scale:
    """Values between `low` and `high`, laid out from `start` to `end`."""

    kind: Literal["linear", "log"]
    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        """Return the place of a value; those beyond the axis are put at its end."""
        if self.kind == "log":
            value = max(value, self.low)
            share = log10(value / self.low) / log10(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)


def linear(highest: float, start: float, end: float) -> Scale:
    """Return a scale from nothing to a round value that is not below `highest`."""
    step = _round_step(highest / 4) if highest > 0 else 0.25
    count = max(1, ceil(highest / step - 1e-9))
    ticks = tuple(step * place for place in range(count + 1))
    return Scale("linear", 0.0, ticks[-1], start, end, ticks)


def logarithmic(lowest: float, highest: float, start: float, end: float) -> Scale:
    """Return a scale between round values around positive ones."""
    first, last = floor(log10(lowest)), ceil(log10(highest))
    rounds = [step * 10.0**power for power in range(first, last + 1) for step in (1, 2, 5)]
    low = max(value for value in rounds if value <= lowest * (1 + 1e-9))
    high = min(value for value in rounds if value >= highest * (1 - 1e-9) and value > low)
    inside = [value for value in rounds if low <= value <= high]
    tens = [value for value in inside if log10(value) % 1 < 1e-9]
    ticks = tens if len(inside) > _MOST_TICKS and len(tens) > 1 else inside
    ticks = ticks[:: ceil(len(ticks) / _MOST_TICKS)]
    return Scale("log", low, high, start, end, tuple(ticks))


def suited(values: list[float], start: float, end: float) -> Scale:
    """Return the scale on which values can be told apart; none of them is negative."""
    highest = max(values, default=0.0)
    lowest = min(values, default=0.0)
    if lowest > 0 and highest / lowest > _WIDE:
        return logarithmic(lowest, highest, start, end)
    return linear(highest, start, end)


def _round_step(least: float) -> float:
    power = 10.0 ** floor(log10(least))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= least * (1 - 1e-9))
