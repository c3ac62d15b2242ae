"""How much was resolved for how much spent, as the trials went."""

from datetime import UTC, datetime
from typing import Final

from turnout.evals.report.html.markup import Html, element
from turnout.evals.report.html.plots.frame import WIDTH, Entry, Plot, bottom_axis, left_axis
from turnout.evals.report.html.plots.marks import mark, shade, shape_of
from turnout.evals.report.html.plots.measure import Measure, measure_of
from turnout.evals.report.html.plots.scales import Scale, linear
from turnout.evals.report.model import Section
from turnout.evals.trials.model import Trial

__all__ = ["spend_plot"]

_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, WIDTH - 24.0, 30.0, 230.0
_BEFORE: Final = datetime.min.replace(tzinfo=UTC)

Curve = list[tuple[float, int]]
"""Spent so far and resolved so far, after each trial."""


def spend_plot(section: Section, name: str) -> Plot | None:
    """Return one curve an arm; None where no arm has a known price for all of its trials."""
    measure = measure_of(section)
    curves: dict[int, Curve] = {}
    for place, arm in enumerate(section.arms):
        results = [result for task in section.tasks if (result := task.of(arm.name)) is not None]
        curve = _curve([trial for result in results for trial in result.trials], measure)
        if curve is not None:
            curves[place] = curve
    if not curves:
        return None
    across = linear(max(curve[-1][0] for curve in curves.values()), _LEFT, _RIGHT)
    up = linear(max(4, *(curve[-1][1] for curve in curves.values())), _BOTTOM, _TOP)
    parts: list[Html] = [
        left_axis(up, _LEFT, _RIGHT, "resolved so far", lambda value: f"{value:g}"),
        bottom_axis(across, _TOP, _BOTTOM, f"{measure.name.lower()} so far", measure.words),
    ]
    told = []
    for place, curve in curves.items():
        name_of = section.arms[place].name
        end = f"{name_of}: {curve[-1][1]} for {measure.words(curve[-1][0])}"
        parts += _drawn(curve, place, across, up, end)
        told.append(end)
    legend = [Entry(section.arms[n].name, shade(n), shape_of(n)) for n in curves]
    title = f"Resolved against {'spend' if measure.name == 'Cost' else 'time'}"
    return Plot(name, title, "; ".join(told), _BOTTOM + 40, parts, legend)


def _curve(trials: list[Trial], measure: Measure) -> Curve | None:
    curve: Curve = [(0.0, 0)]
    for trial in sorted(trials, key=lambda trial: trial.started_at or _BEFORE):
        taken = measure.of_trial(trial)
        if taken is None:
            return None
        curve.append((curve[-1][0] + taken, curve[-1][1] + (trial.grade == "resolved")))
    return curve


def _drawn(curve: Curve, place: int, across: Scale, up: Scale, told: str) -> list[Html]:
    steps = f"M{across.at(0):.1f} {up.at(0):.1f}"
    steps += "".join(f"H{across.at(x):.1f}V{up.at(y):.1f}" for x, y in curve[1:])
    x, y = curve[-1]
    return [
        element("path", d=steps, class_=f"curve {shade(place)}"),
        mark(across.at(x), up.at(y), shape_of(place), shade(place), told),
    ]
