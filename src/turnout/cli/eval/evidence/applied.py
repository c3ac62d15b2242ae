"""What routing goes by, for people."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from turnout.core.govern.evidence import Evaluation
from turnout.gateway.evaluations.views import (
    EvaluationsOut,
    PreviewOut,
    QualityOut,
    RouteChangeOut,
)

__all__ = ["applied_text", "beside_text", "preview_text", "scores_text"]


def scores_text(evaluation: Evaluation) -> str:
    """Return what an evaluation says of each model, the best first."""
    head = (
        f"evaluation {evaluation.id}: {evaluation.task}, {evaluation.mode} tests, "
        f"{evaluation.source}{_set(evaluation.tasks)}, measured {evaluation.at:%Y-%m-%d}"
    )
    results = [QualityOut.of(each) for each in evaluation.results()]
    results.sort(key=lambda each: -each.value)
    width = max(len(each.subject) for each in results)
    return "\n".join([head, *(f"  {_quality(each, width)}" for each in results)])


def preview_text(preview: PreviewOut) -> str:
    """Return whom requests go to before and after, and what else follows; empty: nothing does."""
    lines: list[str] = []
    for (policy, task), routes in groupby(preview.routes, lambda r: (r.policy, r.task)):
        lines += [f"{task} requests under policy {policy}:", *_routes(list(routes))]
    lines += [
        f"{each.subject}: {each.value:.2f} of {each.samples} counts no more ({each.source})"
        for each in preview.forgotten
    ]
    lines += [f"{name}: no deployment has this model, so far" for name in preview.unknown]
    return "\n".join(lines)


def beside_text(evaluation: Evaluation, preview: PreviewOut) -> str:
    """Return what else is ranked beside it, and what is not because it is of other tasks."""
    own = {score.subject for score in evaluation.scores}
    of = "other tasks" if evaluation.beside else "the same set of tasks"
    lines = [
        f"{each.subject}: {each.value:.2f} of {each.samples} still counts beside it, measured on "
        f"{of} ({each.source})"
        for each in preview.counting
        if each.task == evaluation.task and each.subject not in own
    ]
    if any(each.task == evaluation.task for each in preview.forgotten) and not evaluation.beside:
        lines.append(
            "Figures of different tasks are not ranked together, nor are those with the tests in "
            "sight and those without. Run the models on the same tasks; or, where only the tasks "
            "differ, rank them together all the same: --beside"
        )
    return "\n".join(lines)


def applied_text(listed: EvaluationsOut) -> str:
    """Return what is applied, the last first, and what of it counts."""
    if not listed.evaluations:
        return "No evaluation is applied. Apply one: turnout eval apply RESULTS"
    lines = [
        f"{each.id}  {each.task}, {each.mode} tests{_set(each.tasks)}, "
        f"measured {each.at:%Y-%m-%d}: "
        f"{each.source}{', beside others' if each.beside else ''}"
        + (f"; applied by {each.author}" if each.author else "")
        for each in listed.evaluations
    ]
    width = max((len(each.subject) for each in listed.counting), default=0)
    counting = [
        f"  {_quality(each, width)}  {each.task} ({each.source})" for each in listed.counting
    ]
    return "\n".join([*lines, "", "What counts:", *counting])


def _set(tasks: str) -> str:
    return f", set {tasks}" if tasks else ""


def _quality(result: QualityOut, width: int) -> str:
    return (
        f"{result.subject:{width}}  {result.value:.2f} of {result.samples} tasks, "
        f"at least {result.least:.2f}"
    )


def _routes(routes: Sequence[RouteChangeOut]) -> Iterator[str]:
    for route in routes:
        after = route.after or "nobody"
        shown = f"{route.before or 'nobody'} → {after}" if route.changes else f"{after}, as before"
        yield f"  {route.objective:9} {shown}"
        if route.changes:
            yield f"            {route.reason}"
