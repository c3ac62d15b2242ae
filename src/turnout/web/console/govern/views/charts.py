"""Charts as plain geometry: a template draws them as SVG, a table beside them says the same."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Final

__all__ = [
    "Bar",
    "Chart",
    "Column",
    "Legend",
    "Line",
    "Series",
    "Tick",
    "columns_chart",
    "fold_series",
]

_WIDTH: Final = 720.0
_HEIGHT: Final = 220.0
_LEFT: Final = 80.0
_BOTTOM: Final = 36.0
_TOP: Final = 16.0
_RIGHT: Final = 28.0
_WIDEST_BAR: Final = 48.0
_FILLED: Final = 0.72
"""Share of a column's room that its bar takes."""
_MOST_LABELS: Final = 7
_HALF_LETTER: Final = 3.6
"""Pixels of half a character of a label."""
_TICKS: Final = 4
_THINNEST: Final = 1.0
"""Pixels: what is there at all is seen."""


@dataclass(frozen=True, slots=True)
class Series:
    """Values of one name, one for each column."""

    name: str
    values: tuple[float, ...]
    tone: str = ""
    """What it means (`good`, `bad`, `dim`); empty: a colour of its own place."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One rectangle."""

    x: float
    y: float
    width: float
    height: float
    colour: str
    """Of its series, as the style sheet names it."""
    title: str
    """What it stands for, for whoever points at it."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A line across, with its value."""

    y: float
    label: str


@dataclass(frozen=True, slots=True)
class Column:
    """The label below a column; empty where there is no room for one."""

    x: float
    label: str


@dataclass(frozen=True, slots=True)
class Legend:
    """A series by its colour."""

    name: str
    colour: str


@dataclass(frozen=True, slots=True)
class Line:
    """The values of one column in words, one for each series."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """Stacked columns."""

    title: str
    width: float
    height: float
    left: float
    base: float
    """Where the columns stand."""
    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]
    columns: tuple[Column, ...]
    legend: tuple[Legend, ...]
    lines: tuple[Line, ...]
    """The same as a table; columns without a value are left out."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to see."""
        return not self.bars


def columns_chart(
    title: str,
    names: Sequence[str],
    series: Sequence[Series],
    said: Callable[[float], str],
    *,
    whole: bool = False,
) -> Chart:
    """Return stacked columns, one for each name; `said` writes a value for people.

    Values are at least 0, and as many in each series as there are names. With `whole` they
    are counts, and so are the values at the axis.
    """
    totals = [sum(one.values[place] for one in series) for place in range(len(names))]
    top = _round_up(max(totals, default=0.0), whole=whole)
    room = (_WIDTH - _LEFT - _RIGHT) / max(1, len(names))
    base, tall = _HEIGHT - _BOTTOM, _HEIGHT - _BOTTOM - _TOP
    wide = min(_WIDEST_BAR, room * _FILLED)
    colours = [one.tone or f"s{number}" for number, one in enumerate(series, 1)]
    bars: list[Bar] = []
    for place, name in enumerate(names):
        middle, y = _LEFT + (place + 0.5) * room, base
        for one, colour in zip(series, colours, strict=True):
            value = one.values[place]
            if value <= 0:
                continue
            height = max(_THINNEST, tall * value / top)
            y -= height
            words = f"{name}: {one.name} {said(value)}"
            bars.append(Bar(_px(middle - wide / 2), _px(y), _px(wide), _px(height), colour, words))
    every = -(-len(names) // _MOST_LABELS) or 1
    return Chart(
        title=title,
        width=_WIDTH,
        height=_HEIGHT,
        left=_LEFT,
        base=base,
        bars=tuple(bars),
        ticks=tuple(
            Tick(_px(base - tall * step / _TICKS), said(top * step / _TICKS))
            for step in range(_TICKS + 1)
        ),
        columns=tuple(
            _column(_LEFT + (place + 0.5) * room, name if place % every == 0 else "")
            for place, name in enumerate(names)
        ),
        legend=tuple(Legend(s.name, colour) for s, colour in zip(series, colours, strict=True)),
        lines=tuple(
            Line(name, tuple(said(one.values[place]) for one in series))
            for place, name in enumerate(names)
            if totals[place]
        ),
    )


def fold_series(series: Sequence[Series], *, most: int) -> Sequence[Series]:
    """Return the largest series first, those beyond `most` added up as one named `others`."""
    ranked = sorted(series, key=lambda one: -sum(one.values))
    if len(ranked) <= most:
        return ranked
    kept, rest = ranked[: most - 1], ranked[most - 1 :]
    together = zip(*(one.values for one in rest), strict=True)
    return [*kept, Series("others", tuple(map(sum, together)), "dim")]


def _column(middle: float, name: str) -> Column:
    """Return the label of a column, far enough from the right edge to be seen whole."""
    return Column(_px(min(middle, _WIDTH - _HALF_LETTER * len(name))), name)


def _round_up(value: float, *, whole: bool) -> float:
    """Return the next number up that reads well on an axis with four parts."""
    if value <= 0:
        return float(_TICKS) if whole else 1.0
    unit: float = 10.0 ** floor(log10(value))
    tops = (step * unit for step in (1.0, 2.0, 4.0, 8.0, 10.0, 12.0, 20.0))
    return next(
        top for top in tops if value <= top * 1.0001 and not (whole and round(top) % _TICKS)
    )


def _px(value: float) -> float:
    return round(value, 1)
