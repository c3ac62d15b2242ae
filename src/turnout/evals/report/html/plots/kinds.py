"""Which models take which kinds of call."""

from turnout.evals.report.html.markup import Html, element, text
from turnout.evals.report.html.plots.frame import WIDTH, Entry, Plot, bottom_axis
from turnout.evals.report.html.plots.marks import label, shade, short
from turnout.evals.report.html.plots.rates import rate_scale
from turnout.evals.report.html.plots.scales import Scale
from turnout.evals.report.model import Arm, Kind, Section
from turnout.evals.report.words import percent

__all__ = ["kind_plot"]

_LEFT, _RIGHT = 76.0, WIDTH - 16.0
_NAME, _ROW = 20.0, 20.0


def kind_plot(section: Section, name: str) -> Plot | None:
    """Return a bar for each arm and kind of call; None where no model was called."""
    arms = [arm for arm in section.arms if arm.kinds]
    models = list(dict.fromkeys(m.model for arm in arms for k in arm.kinds for m in k.models))
    if not models:
        return None
    scale = rate_scale(_LEFT, _RIGHT)
    bottom = 4 + sum(_NAME + _ROW * len(arm.kinds) for arm in arms)
    parts: list[Html] = [bottom_axis(scale, 4, bottom, "of the calls of a kind", percent)]
    y = 4.0
    for arm in arms:
        parts.append(label(4, y + 14, short(arm.name, 56)))
        y += _NAME
        for kind in arm.kinds:
            parts += _bar(scale, y, kind, models)
            y += _ROW
    legend = [Entry(model, shade(place), "square") for place, model in enumerate(models)]
    words = ". ".join(_words(arm) for arm in arms)
    return Plot(name, "Model of each kind of call", words, bottom + 40, parts, legend)


def _bar(scale: Scale, y: float, kind: Kind, models: list[str]) -> list[Html]:
    parts = [label(_LEFT - 6, y + 13, kind.kind, "end")]
    done = 0
    for share in kind.models if kind.calls else ():
        start, end = (scale.at(n / kind.calls) for n in (done, done + share.calls))
        done += share.calls
        told = f"{kind.kind}: {share.model} {percent(share.calls / kind.calls)}"
        parts.append(
            element(
                "rect",
                element("title", text(told)),
                x=start,
                y=y + 2,
                width=max(0.5, end - start),
                height=_ROW - 5,
                class_=f"bar {shade(models.index(share.model))}",
            )
        )
    return parts


def _words(arm: Arm) -> str:
    return f"{arm.name}: {'; '.join(_shares(kind) for kind in arm.kinds if kind.calls)}"


def _shares(kind: Kind) -> str:
    shares = [f"{each.model} {percent(each.calls / kind.calls)}" for each in kind.models]
    return f"{kind.kind} {', '.join(shares)}"
