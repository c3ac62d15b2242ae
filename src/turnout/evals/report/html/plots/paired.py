"""What each task took under two arms, and who resolved it."""

from typing import Final

from turnout.evals.report.html.markup import Html
from turnout.evals.report.html.plots.frame import (
    WIDTH,
    Entry,
    Plot,
    bottom_axis,
    left_axis,
    room_for,
)
from turnout.evals.report.html.plots.marks import Shape, beside, label, line, mark, short
from turnout.evals.report.html.plots.measure import measure_of
from turnout.evals.report.html.plots.scales import suited
from turnout.evals.report.model import Comparison, InstanceResults, Section

__all__ = ["paired_plot"]

_RIGHT, _TOP, _BOTTOM = WIDTH - 24.0, 30.0, 270.0

_MARKS: Final[tuple[tuple[str, Shape], ...]] = (
    ("shade-2", "circle"),
    ("shade-0", "triangle"),
    ("shade-1", "square"),
    ("nobody", "diamond"),
)
"""Of tasks that both resolved, the first alone, the second alone, neither."""


def paired_plot(section: Section, comparison: Comparison, name: str) -> Plot | None:
    """Return one point a task; None where less than two tasks have both figures."""
    measure = measure_of(section)
    found = [
        (task, x, y, _who(task, comparison))
        for task in section.tasks
        if (x := measure.of_task(task.of(comparison.reference))) is not None
        and (y := measure.of_task(task.of(comparison.arm))) is not None
    ]
    if len(found) < 2:
        return None
    values = [value for _, x, y, _ in found for value in (x, y)]
    up = suited(values, _BOTTOM, _TOP)
    left = room_for(map(measure.words, up.ticks))
    across = suited(values, left, _RIGHT)
    reference, arm = short(comparison.reference, 32), short(comparison.arm, 32)
    parts: list[Html] = [
        left_axis(up, left, _RIGHT, arm, measure.words),
        bottom_axis(across, _TOP, _BOTTOM, reference, measure.words),
        line(left, _BOTTOM, _RIGHT, _TOP, "even"),
    ]
    groups: dict[tuple[int, int, int], list[str]] = {}
    for task, x, y, who in found:
        told = f"{task.instance_id}: {measure.words(y)} under {comparison.arm}, {measure.words(x)}"
        told += f" under {comparison.reference}"
        groups.setdefault((round(across.at(x)), round(up.at(y)), who), []).append(told)
    shifts = beside([(x, y) for x, y, _ in groups])
    for ((x, y, who), told_of), shift in zip(groups.items(), shifts, strict=True):
        class_, shape = _MARKS[who]
        parts.append(mark(x + shift, y, shape, class_, "; ".join(told_of)))
        if len(told_of) > 1:
            parts.append(label(x + shift, y - 8, f"×{len(told_of)}", "middle"))
    below = sum(y < x for _, x, y, _ in found)
    legend = _legend(comparison, [who for *_, who in found])
    words = f"{comparison.arm} took less on {below} of {len(found)} tasks. "
    words += "; ".join(entry.name for entry in legend)
    title = f"{measure.name} of each task, {comparison.arm} against {comparison.reference}"
    return Plot(name, title, words, _BOTTOM + 40, parts, legend)


def _who(task: InstanceResults, comparison: Comparison) -> int:
    shares = [
        (result.share or 0.0) if (result := task.of(name)) is not None else 0.0
        for name in (comparison.arm, comparison.reference)
    ]
    if shares[0] == shares[1]:
        return 0 if shares[0] else 3
    return 1 if shares[0] > shares[1] else 2


def _legend(comparison: Comparison, who: list[int]) -> list[Entry]:
    names = (
        "both resolved",
        f"{comparison.arm} alone",
        f"{comparison.reference} alone",
        "neither",
    )
    return [
        Entry(f"{names[place]}: {who.count(place)}", class_, shape)
        for place, (class_, shape) in enumerate(_MARKS)
        if place in who
    ]
