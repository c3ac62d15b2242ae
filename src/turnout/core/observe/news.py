"""What becomes of runs, told to whoever looks on."""

from dataclasses import dataclass

from turnout.core.govern.happenings import Happening
from turnout.core.service.orders import OrderedRun

__all__ = ["RunNews", "news_of", "ordered"]


@dataclass(frozen=True, slots=True)
class RunNews:
    """That a run was ordered, begins, waits or has ended."""

    event: str
    """`run.ordered`, or the kind of what happened."""
    run_id: str
    project: str
    key: str
    """Name of the key that ordered it."""
    text: str
    """One sentence for people."""


def ordered(run: OrderedRun) -> RunNews:
    """Say that somebody has ordered a run."""
    order = run.order
    text = (
        f"Run {run.run_id} of project {order.project} was ordered by key {order.key}: "
        f"{order.task.repository} at {order.task.base}."
    )
    return RunNews("run.ordered", run.run_id, order.project, order.key, text)


def news_of(happening: Happening) -> RunNews:
    """Say what happened to a run."""
    return RunNews(
        happening.kind, happening.subject, happening.project, happening.key, happening.text
    )
