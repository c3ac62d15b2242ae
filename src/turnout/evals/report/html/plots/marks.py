"""Points, lines and words on a plot. Arms are told apart by colour and by shape."""

from collections.abc import Sequence
from math import hypot
from typing import Final, Literal, assert_never

from turnout.evals.report.html.markup import Html, element, text

__all__ = ["SHADES", "Shape", "beside", "label", "line", "mark", "shade", "shape_of", "short"]

Shape = Literal["circle", "square", "diamond", "triangle"]

SHADES: Final = 8
"""Colours that the style sheet has."""

_SHAPES: Final[tuple[Shape, ...]] = ("circle", "square", "diamond", "triangle")
_R: Final = 5.0

Corners = tuple[tuple[float, float], ...]


def shade(place: int) -> str:
    """Return the class that colours what belongs to the arm or model at this place."""
    return f"shade-{place % SHADES}"


def shape_of(place: int) -> Shape:
    """Return the shape of the points of the arm at this place."""
    return _SHAPES[place % len(_SHAPES)]


def mark(x: float, y: float, shape: Shape, class_: str, title: str) -> Html:
    """Return a point, with what is said of it where a pointer rests on it."""
    told = element("title", text(title))
    match shape:
        case "circle":
            return element("circle", told, cx=x, cy=y, r=_R, class_=class_)
        case "square":
            corners: Corners = ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9))
        case "diamond":
            corners = ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0))
        case "triangle":
            corners = ((0, -1.25), (1.25, 1.1), (-1.25, 1.1))
        case _:
            assert_never(shape)
    places = " ".join(f"{x + _R * right:.1f},{y + _R * down:.1f}" for right, down in corners)
    return element("polygon", told, points=places, class_=class_)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Html:
    """Return a straight line; none where it would have no length."""
    if hypot(x2 - x1, y2 - y1) < 0.01:
        return Html("")
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def beside(places: Sequence[tuple[float, float]]) -> tuple[float, ...]:
    """Return how far to the right each point is put, so that none lies under another.

    Points count as lying on each other where less than half of a mark shows.
    """
    taken: list[tuple[float, float]] = []
    shifts = []
    for x, y in places:
        shift = 0.0
        while any(hypot(x + shift - each, y - up) < _R for each, up in taken):
            shift += 2 * _R
        taken.append((x + shift, y))
        shifts.append(shift)
    return tuple(shifts)


def label(
    x: float,
    y: float,
    words: str,
    anchor: Literal["start", "middle", "end"] = "start",
    *,
    class_: str | None = None,
) -> Html:
    """Return words at a place."""
    return element("text", text(words), x=x, y=y, text_anchor=anchor, class_=class_)


def short(name: str, width: int) -> str:
    """Return a name of at most `width` characters; its middle goes first."""
    if len(name) <= width:
        return name
    kept = width - 1
    return f"{name[: kept - kept // 2]}…{name[len(name) - kept // 2 :]}"
