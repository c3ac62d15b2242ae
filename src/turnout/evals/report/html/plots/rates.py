"""Pass rates with their intervals: of each arm, and of each arm by difficulty."""

from collections.abc import Iterator, Sequence

from turnout.evals.report.html.markup import Html
from turnout.evals.report.html.plots.frame import WIDTH, Entry, Plot, bottom_axis
from turnout.evals.report.html.plots.marks import label, line, mark, shade, shape_of, short
from turnout.evals.report.html.plots.scales import Scale
from turnout.evals.report.model import Arm, Section, Share
from turnout.evals.report.words import percent, range_words

__all__ = ["difficulty_plot", "rate_plot", "rate_scale"]

_LEFT, _RIGHT = 14.0, WIDTH - 44.0
_NAME, _ROW = 18.0, 22.0


def rate_scale(start: float, end: float) -> Scale:
    """Return the scale of all rates, nothing to everything."""
    return Scale("linear", 0.0, 1.0, start, end, (0.0, 0.25, 0.5, 0.75, 1.0))


def rate_plot(section: Section, name: str) -> Plot:
    """Return one row for each arm, its name above its interval."""
    scale, step = rate_scale(_LEFT, _RIGHT), _NAME + _ROW
    bottom = 4 + step * len(section.arms)
    parts = [bottom_axis(scale, 4, bottom, "resolved, of graded tasks", percent)]
    for place, arm in enumerate(section.arms):
        top = 4 + step * place
        parts.append(label(_LEFT, top + 13, short(arm.name, 52)))
        parts += _row(scale, top + _NAME + 8, place, arm.name, arm.share)
    words = "; ".join(f"{arm.name} {_told(arm.share)}" for arm in section.arms)
    return Plot(name, "Pass rate with 95 % interval", words, bottom + 40, parts)


def difficulty_plot(section: Section, name: str) -> Plot | None:
    """Return the same for each difficulty; None where none is known."""
    names = list(dict.fromkeys(g.name for arm in section.arms for g in arm.difficulties))
    if not names:
        return None
    scale, step = rate_scale(_LEFT, _RIGHT), _NAME + 14 * len(section.arms) + 8
    bottom = 4 + step * len(names)
    parts = [bottom_axis(scale, 4, bottom, "resolved, of graded tasks", percent)]
    for row, difficulty in enumerate(names):
        top = 4 + step * row
        parts.append(
            label(
                _LEFT, top + 13, f"{difficulty} {'line' if difficulty == '1' else 'lines'} of code"
            )
        )
        for place, arm in enumerate(section.arms):
            share = _share(arm, difficulty)
            if share is not None:
                parts += _row(scale, top + _NAME + 6 + 14 * place, place, arm.name, share)
    words = "; ".join(_difficulty_words(section.arms, each) for each in names)
    legend = [Entry(a.name, shade(n), shape_of(n)) for n, a in enumerate(section.arms)]
    return Plot(name, "Pass rate by size of the known fix", words, bottom + 40, parts, legend)


def _row(scale: Scale, y: float, place: int, arm: str, share: Share) -> Iterator[Html]:
    if share.rate is None:
        return
    low, high, rate = (scale.at(v) for v in (share.interval.low, share.interval.high, share.rate))
    yield line(low, y, high, y, f"whisker {shade(place)}")
    yield mark(rate, y, shape_of(place), shade(place), f"{arm}: {_told(share)}")
    yield label(_RIGHT + 10, y + 4, percent(share.rate))


def _share(arm: Arm, difficulty: str) -> Share | None:
    return next((each.share for each in arm.difficulties if each.name == difficulty), None)


def _told(share: Share) -> str:
    return f"{percent(share.rate)} of {share.tasks} ({range_words(share)})"


def _difficulty_words(arms: Sequence[Arm], difficulty: str) -> str:
    shares = [(arm.name, _share(arm, difficulty)) for arm in arms]
    told = ", ".join(f"{name} {_told(share)}" for name, share in shares if share is not None)
    return f"{difficulty} lines: {told}"
