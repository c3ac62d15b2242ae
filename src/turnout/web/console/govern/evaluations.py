"""Evaluations: which of them routing goes by, their reports, and what applying one would change."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, get_args

from starlette.responses import Response

from turnout.core.clock import Clock
from turnout.core.govern.evidence import Evaluation, TestsSeen
from turnout.core.inference import TaskKind
from turnout.errors import ConfigError, UsageError
from turnout.evals.evidence.quality import Shown, Wish, evaluation_of
from turnout.evals.report.html.page import report_css
from turnout.gateway.evaluations.desk import EvaluationDesk
from turnout.gateway.evaluations.preview import Preview
from turnout.web.console.govern.views.evaluations import ReportBody, Results, ResultsFolder
from turnout.web.console.sections import Change, Done, Page, Section
from turnout.web.console.visits import Form, Visit

__all__ = [
    "EvaluationsView",
    "PreviewView",
    "ReportView",
    "evaluations_section",
]

_AT_ONCE: Final = 1
"""Reports that are made at once: each keeps a core busy."""


@dataclass(frozen=True, slots=True)
class EvaluationsView:
    """What routing goes by, and what results there are."""

    applied: Sequence[Evaluation]
    """The one that was applied last first."""
    results: Sequence[Results]
    """Empty for whoever may not read them."""
    folder: str


@dataclass(frozen=True, slots=True)
class ReportView:
    """The report of one file."""

    name: str
    body: ReportBody
    tasks: tuple[TaskKind, ...] = get_args(TaskKind)
    modes: tuple[TestsSeen, ...] = get_args(TestsSeen)

    @property
    def task_options(self) -> Sequence[tuple[str, str]]:
        """The kinds of requests that may be routed by it."""
        return [(name, name) for name in self.tasks]

    @property
    def mode_options(self) -> Sequence[tuple[str, str]]:
        """Whether the models saw the tests; one of the two where results have both."""
        return [("", "the one there is"), *((name, f"{name} tests") for name in self.modes)]


@dataclass(frozen=True, slots=True)
class PreviewView:
    """What it would change to apply an evaluation, or to take one back."""

    preview: Preview
    evaluation: Evaluation
    notes: Sequence[str] = ()
    """What was left out of it and why."""
    name: str = ""
    """The file that it is of; empty where it is to be taken back."""
    task: str = ""
    mode: str = ""
    beside: bool = False
    """Whether it is to be ranked beside what counts already, though that is of other tasks."""


def evaluations_section(desk: EvaluationDesk, folder: ResultsFolder, clock: Clock) -> Section:
    """Return the pages; results hold the diffs of any project, so that admins alone read them."""
    pages = _Pages(desk, folder, clock)
    return Section(
        "Evaluations",
        "/evaluations",
        pages=(
            Page("/evaluations", pages.all),
            Page("/evaluations/report.css", pages.css, "admin"),
            Page("/evaluations/report", pages.report, "admin"),
            Page("/evaluations/undo", pages.preview_undo, "admin"),
        ),
        changes=(
            Change("/evaluations/preview", "preview_evaluation", pages.preview, "admin"),
            Change("/evaluations/apply", "apply_evaluation", pages.apply, "admin"),
            Change("/evaluations/undo", "undo_evaluation", pages.undo, "admin"),
        ),
    )


class _Pages:
    def __init__(self, desk: EvaluationDesk, folder: ResultsFolder, clock: Clock) -> None:
        self._desk = desk
        self._folder = folder
        self._clock = clock
        self._making = asyncio.Semaphore(_AT_ONCE)

    async def all(self, visit: Visit) -> Response:
        """List what is applied, and the results that can be looked at."""
        applied = tuple(reversed(await self._desk.applied()))
        admin = visit.caller.admin
        results = await asyncio.to_thread(self._folder.all) if admin else ()
        view = EvaluationsView(applied, results, str(self._folder.folder) if admin else "")
        return visit.page("govern/evaluations.html", view)

    async def css(self, _: Visit) -> Response:
        """Return the style sheet of reports."""
        return Response(report_css(), media_type="text/css; charset=utf-8")

    async def report(self, visit: Visit) -> Response:
        """Show the report of one file."""
        name = visit.query("name")
        async with self._making:
            body = await asyncio.to_thread(self._folder.report, name)
        return visit.page("govern/evaluation.html", ReportView(name, body))

    async def preview(self, visit: Visit) -> Done:
        """Show what it would change to apply what a file shows; nothing is changed."""
        shown = await self._shown(visit.form)
        preview = await self._desk.preview(shown.evaluation)
        form = visit.form
        view = PreviewView(
            preview,
            shown.evaluation,
            tuple(filter(None, (shown.ranking, *shown.notes))),
            form.text("name"),
            form.text("task"),
            form.text("mode"),
            form.flag("beside"),
        )
        return Done(visit.page("govern/evaluation_preview.html", view), changed=False)

    async def apply(self, visit: Visit) -> Done:
        """Let routing go by what a file shows, if it still shows what was previewed."""
        shown = await self._shown(visit.form)
        evaluation = shown.evaluation
        if evaluation.id != visit.form.text("id"):
            raise ConfigError(
                "The results have changed since they were looked at.", mend="Look at them again."
            )
        applied = await self._desk.apply(evaluation, visit.caller.key)
        detail = {"task": evaluation.task, "mode": evaluation.mode}
        return Done(visit.go("/evaluations"), evaluation.id, detail, changed=applied.changed)

    async def preview_undo(self, visit: Visit) -> Response:
        """Show what it would change to take an evaluation back."""
        wanted = visit.query("id")
        preview = await self._desk.preview_undo(wanted)
        (evaluation,) = [one for one in await self._desk.applied() if one.id == wanted]
        return visit.page("govern/evaluation_preview.html", PreviewView(preview, evaluation))

    async def undo(self, visit: Visit) -> Done:
        """Take an evaluation back: what counted before it counts again."""
        wanted = visit.form.text("id")
        await self._desk.undo(wanted)
        return Done(visit.go("/evaluations"), wanted)

    async def _shown(self, form: Form) -> Shown:
        name, asked = form.text("name"), form.text("task")
        task = next((kind for kind in get_args(TaskKind) if kind == asked), None)
        if task is None:
            raise UsageError(f"There is no task kind {asked[:100]!r}.")
        mode = next((each for each in get_args(TestsSeen) if each == form.text("mode")), None)
        async with self._making:
            kept = await asyncio.to_thread(self._folder.results, name)
        wish = Wish(name, task, mode, conditions=kept.conditions, beside=form.flag("beside"))
        return evaluation_of(kept.trials, wish, self._clock.now())
