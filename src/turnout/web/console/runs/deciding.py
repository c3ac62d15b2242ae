"""What is done from the pages of runs; each does what the API's operation of its name does."""

import asyncio
from dataclasses import dataclass
from typing import get_args

from pydantic import ValidationError
from starlette.responses import Response

from turnout.core.ids import RunId
from turnout.core.service.figures import RunFigures
from turnout.core.service.orders import OrderedRun, Publish
from turnout.errors import GatewayError, UsageError
from turnout.gateway.config.tables import plain_words
from turnout.runs.trajectory import TrajectoryFormat
from turnout.runs.trajectory.documents import trajectory_json
from turnout.web.console.runs.listing import list_again
from turnout.web.console.runs.parts import RunPages, scope_of
from turnout.web.console.sections import Done
from turnout.web.console.visits import Visit, in_project
from turnout.web.runs.intake import conflicts_as, publish, take_again
from turnout.web.runs.routes import DecisionIn

__all__ = [
    "CancelView",
    "approve",
    "ask_cancel",
    "cancel",
    "publish_diff",
    "reject",
    "retry",
    "take_patch",
    "take_trajectory",
]


@dataclass(frozen=True, slots=True)
class CancelView:
    """A run that somebody is about to stop."""

    run: OrderedRun
    figures: RunFigures
    back: str
    """The list that it was chosen from, as it was filtered; empty: its own page."""


async def cancel(pages: RunPages, visit: Visit) -> Done:
    """Stop a run after the step under way; one that has ended stays as it is."""
    run = await _run(pages, visit)
    changed = run.state != "ended" and not run.cancel_asked
    await pages.runs.desk.cancel(visit.project, run.run_id, visit.caller.key)
    back = list_again(visit.form.text("back"))
    path = f"{back}#row-{run.run_id}" if back else f"/runs/{run.run_id}"
    return Done(_to(visit, path), run.run_id, changed=changed)


async def ask_cancel(pages: RunPages, visit: Visit) -> Response:
    """Ask whether a run is meant to be stopped: hours of work may hang on it."""
    run = await _run(pages, visit)
    figures = (await pages.figures([run])).get(run.run_id, RunFigures())
    view = CancelView(run, figures, list_again(visit.query("back")))
    return visit.page("runs/cancel.html", view)


async def retry(pages: RunPages, visit: Visit) -> Done:
    """Order a run that has ended again, charged to the visitor's key."""
    run_id = RunId(visit.path("run_id"))
    once = visit.form.text("once") or None
    submitted = await take_again(pages.runs, scope_of(visit), run_id, once)
    made = submitted.run.run_id
    return Done(_to(visit, f"/runs/{made}"), run_id, {"run": made}, changed=submitted.created)


async def approve(pages: RunPages, visit: Visit) -> Done:
    """Allow the tool call that was looked at."""
    return await _decide(pages, visit, allowed=True)


async def reject(pages: RunPages, visit: Visit) -> Done:
    """Refuse it; the model is told why."""
    return await _decide(pages, visit, allowed=False)


async def publish_diff(pages: RunPages, visit: Visit) -> Done:
    """Have the diff pushed to a new branch, with a draft of a request or without."""
    asked = visit.form.text("publish")
    wanted = next((each for each in _WAYS if each == asked), None)
    if wanted is None:
        raise UsageError("A diff becomes a `branch` or a `draft`.")
    run_id = RunId(visit.path("run_id"))
    await publish(pages.runs, scope_of(visit), run_id, wanted)
    return Done(_to(visit, f"/runs/{run_id}"), run_id, {"publish": wanted})


async def take_patch(pages: RunPages, visit: Visit) -> Response:
    """Return the diff of a run as a file, in whatever encoding its files have."""
    run = await _run(pages, visit)
    story = await pages.stories.of(pages.runs.desk, visit.project, run.run_id)
    if story.result is None or not story.result.patch:
        raise GatewayError(
            "The run has made no diff" + ("." if run.state == "ended" else " yet."),
            status=409,
            code="no_diff_yet",
        )
    headers = {
        "content-disposition": f'attachment; filename="{run.run_id}.patch"',
        "content-type": "text/x-diff",
    }
    return Response(story.result.patch.diff, headers=headers)


async def take_trajectory(pages: RunPages, visit: Visit) -> Response:
    """Return the run as one document."""
    run = await _run(pages, visit)
    entries = await pages.runs.desk.entries(visit.project, run.run_id)
    if not entries:
        raise GatewayError("Nobody has begun the run yet.", status=409, code="not_begun_yet")
    wanted: TrajectoryFormat = "turnout" if visit.query("format") == "turnout" else "atif"
    body = await asyncio.to_thread(trajectory_json, entries, wanted)
    name = f'attachment; filename="{run.run_id}.{wanted}.json"'
    headers = {"content-disposition": name}
    return Response(body, media_type="application/json", headers=headers)


_WAYS: tuple[Publish, ...] = get_args(Publish)


async def _decide(pages: RunPages, visit: Visit, *, allowed: bool) -> Done:
    call_id, note = visit.form.text("call_id"), visit.form.text("note")
    if not call_id:
        # Whichever waits by now may be another than was looked at.
        raise UsageError("The form names no call.", mend="Decide on the page of the run.")
    try:
        said = DecisionIn(call_id=call_id, note=note)
    except ValidationError as error:
        (first, *_) = error.errors()
        raise UsageError(f"The comment {plain_words(first)}.") from error
    answer, run = said.answer(visit.caller.key, allowed=allowed), await _run(pages, visit)
    with conflicts_as("not_waiting"):
        await pages.runs.desk.decide(visit.project, run.run_id, answer)
    waits = run.waits_for
    tool = {"tool": waits.call.name} if waits is not None and waits.call.id == call_id else {}
    # The place on the page lets a keyboard go on there, and not from the menu.
    back = _to(visit, f"/runs/{run.run_id}#top")
    return Done(back, run.run_id, {"call_id": call_id, **tool})


async def _run(pages: RunPages, visit: Visit) -> OrderedRun:
    return await pages.runs.desk.get(visit.project, RunId(visit.path("run_id")))


def _to(visit: Visit, path: str) -> Response:
    """Return the way to another page of the same project."""
    return visit.go(in_project(path, visit.project, visit.caller.project))
