"""What every plot has: its size, its axes, a name for those who cannot see it, a legend."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from turnout.evals.report.html.markup import Html, element, join, text
from turnout.evals.report.html.plots.marks import Shape, label, line, mark
from turnout.evals.report.html.plots.scales import Scale

__all__ = ["WIDTH", "Entry", "Plot", "bottom_axis", "figure", "left_axis", "room_for"]

WIDTH: Final = 440
"""Of every plot, in its own units: words are large enough on a narrow screen as well."""


_LETTER: Final = 7.5
"""Width of a digit, at most."""
_GAP: Final = 6.0
"""Between a value and its axis."""
_MARGIN: Final = 4.0


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a legend."""

    name: str
    class_: str
    shape: Shape


@dataclass(frozen=True, slots=True)
class Plot:
    """A picture with what it shows in words."""

    name: str
    """Unique among the plots of a page, and fit for an id."""
    title: str
    words: str
    """What it shows, for those who do not see it."""
    height: float
    parts: Sequence[Html]
    legend: Sequence[Entry] = ()


def figure(plot: Plot) -> Html:
    """Return a plot as a figure with a caption."""
    names = (f"{plot.name}-title", f"{plot.name}-words")
    picture = element(
        "svg",
        element("title", text(plot.title), id=names[0]),
        element("desc", text(plot.words), id=names[1]),
        *plot.parts,
        viewBox=f"0 0 {WIDTH} {plot.height:.0f}",
        role="img",
        aria_labelledby=" ".join(names),
    )
    legend = element("ul", *map(_entry, plot.legend), class_="legend") if plot.legend else Html("")
    caption = element("figcaption", text(plot.title))
    return element("figure", caption, picture, legend)


def _entry(entry: Entry) -> Html:
    key = element(
        "svg",
        mark(7, 7, entry.shape, entry.class_, entry.name),
        viewBox="0 0 14 14",
        aria_hidden="true",
        class_="key",
    )
    return element("li", key, text(entry.name))


def bottom_axis(
    scale: Scale, top: float, bottom: float, name: str, words: Callable[[float], str]
) -> Html:
    """Return lines from `top` to `bottom` at the ticks, with their values and a name below."""
    parts: list[Html] = []
    free = -_GAP
    for tick in scale.ticks:
        at, told = scale.at(tick), words(tick)
        parts.append(line(at, top, at, bottom, "grid"))
        anchor = _anchor(at, told)
        width = _LETTER * len(told)
        left = at - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
        if left >= free:
            # A value that would run into the one before is left to its neighbours.
            parts.append(label(at, bottom + 17, told, anchor))
            free = left + width + _GAP / 2
    middle = (scale.start + scale.end) / 2
    return join([*parts, label(middle, bottom + 34, name, "middle", class_="axis")])


def room_for(words: Iterable[str]) -> float:
    """Return where an axis must begin for its values to stand left of it."""
    return _MARGIN + _GAP + _LETTER * max(map(len, words), default=0)


def _anchor(at: float, words: str) -> Literal["start", "middle", "end"]:
    """Return how a value stands at its tick, so that nothing of it is cut off."""
    half = _LETTER * len(words) / 2
    if at + half > WIDTH:
        return "end"
    return "start" if at - half < 0 else "middle"


def left_axis(
    scale: Scale, left: float, right: float, name: str, words: Callable[[float], str]
) -> Html:
    """Return lines from `left` to `right` at the ticks, with their values and a name above."""
    parts: Iterable[Html] = (
        join(
            [
                line(left, scale.at(tick), right, scale.at(tick), "grid"),
                label(left - _GAP, scale.at(tick) + 4, words(tick), "end"),
            ]
        )
        for tick in scale.ticks
    )
    return join([*parts, label(4, scale.end - 10, name, class_="axis")])
