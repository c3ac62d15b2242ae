"""What arms resolve for what they cost."""

from turnout.evals.report.html.markup import Html, element
from turnout.evals.report.html.plots.frame import WIDTH, Entry, Plot, bottom_axis, left_axis
from turnout.evals.report.html.plots.marks import beside, line, mark, shade, shape_of
from turnout.evals.report.html.plots.measure import Measure, measure_of
from turnout.evals.report.html.plots.rates import rate_scale
from turnout.evals.report.html.plots.scales import Scale, suited
from turnout.evals.report.model import Arm, Section
from turnout.evals.report.words import percent, range_words

__all__ = ["cost_plot"]

_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, WIDTH - 20.0, 30.0, 230.0

Point = tuple[int, Arm, float, float]
"""Place among the arms, the arm, what a task takes, its rate."""


def cost_plot(section: Section, name: str) -> Plot | None:
    """Return one point an arm with its intervals; None where no arm has both figures."""
    measure = measure_of(section)
    points: list[Point] = [
        (place, arm, taken, arm.share.rate)
        for place, arm in enumerate(section.arms)
        if (taken := measure.of_arm(arm)) is not None and arm.share.rate is not None
    ]
    if not points:
        return None
    ends = [end for _, arm, *_ in points if (b := measure.bounds(arm)) for end in (b.low, b.high)]
    across = suited([*(taken for _, _, taken, _ in points), *ends], _LEFT, _RIGHT)
    up = rate_scale(_BOTTOM, _TOP)
    title = f"{measure.name} of a task against pass rate"
    parts = [
        left_axis(up, _LEFT, _RIGHT, "resolved", percent),
        bottom_axis(across, _TOP, _BOTTOM, f"{measure.name.lower()} of a task", measure.words),
        _frontier(section, points, across, up),
    ]
    shifts = beside([(across.at(taken), up.at(rate)) for *_, taken, rate in points])
    for point, shift in zip(points, shifts, strict=True):
        parts += _point(point, measure, (across, up), shift)
    words = "; ".join(
        f"{arm.name} {measure.words(taken)}, {percent(rate)}" for _, arm, taken, rate in points
    )
    if len(section.frontier) > 1:
        words += f". No arm resolves more for less than {', '.join(section.frontier)}."
    legend = [Entry(arm.name, shade(place), shape_of(place)) for place, arm, *_ in points]
    return Plot(name, title, words, _BOTTOM + 40, parts, legend)


def _point(point: Point, measure: Measure, scales: tuple[Scale, Scale], shift: float) -> list[Html]:
    """Return the mark of an arm; `shift` is how far to the right, where others are there."""
    place, arm, taken, rate = point
    across, up = scales
    x, y = across.at(taken) + shift, up.at(rate)
    bounds, interval = measure.bounds(arm), arm.share.interval
    parts = [line(x, up.at(interval.low), x, up.at(interval.high), f"whisker {shade(place)}")]
    told = f"{arm.name}: {measure.words(taken)} a task, {percent(rate)} ({range_words(arm.share)})"
    if bounds is not None:
        parts.append(
            line(across.at(bounds.low), y, across.at(bounds.high), y, f"whisker {shade(place)}")
        )
    parts.append(mark(x, y, shape_of(place), shade(place), told))
    return parts


def _frontier(section: Section, points: list[Point], across: Scale, up: Scale) -> Html:
    """Return the line along the arms that none beats."""
    taken = {arm.name: (across.at(x), up.at(y)) for _, arm, x, y in points}
    corners = [taken[name] for name in section.frontier if name in taken]
    if len(corners) < 2 or measure_of(section).name != "Cost":
        return Html("")
    steps = f"M{corners[0][0]:.1f} {corners[0][1]:.1f}"
    steps += "".join(f"H{x:.1f}V{y:.1f}" for x, y in corners[1:])
    return element("path", d=steps, class_="frontier")
