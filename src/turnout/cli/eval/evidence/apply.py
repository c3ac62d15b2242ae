"""`turnout eval apply`: routing goes by what was measured, until that is taken back."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar, get_args

import click
from pydantic import BaseModel, ValidationError

from turnout.cli.eval.evidence.applied import (
    applied_text,
    beside_text,
    preview_text,
    scores_text,
)
from turnout.cli.eval.results.report import check_of
from turnout.cli.options import config_option, json_option, read_settings, say_json
from turnout.cli.runs.remote import server_option
from turnout.cli.terminal import safe
from turnout.core.clock import SystemClock
from turnout.core.govern.evidence import Evaluation
from turnout.core.inference import TaskKind
from turnout.core.json import JsonObject, as_object
from turnout.core.service.options import ServiceAddress
from turnout.errors import GatewayError, UsageError
from turnout.evals.evidence.doubts import FEWEST_TASKS
from turnout.evals.evidence.quality import Shown, Wish, evaluation_of
from turnout.evals.trials.model import Mode
from turnout.evals.trials.store import read_results
from turnout.gateway.evaluations.views import AppliedOut, EvaluationOut, EvaluationsOut, PreviewOut
from turnout.settings import Settings, service_address
from turnout.web.evaluations import EvaluationsClient
from turnout.wiring.evidence.evaluations import EvaluationOffice, open_evaluations

__all__ = ["apply"]

View = TypeVar("View", bound=BaseModel)


@click.command(
    "apply",
    epilog="\b\nExamples:\n"
    "  turnout eval apply bugs.results.jsonl --dry-run\n"
    "  turnout eval apply bugs.results.jsonl\n"
    "  turnout eval apply\n"
    "  turnout eval apply --undo 3f2a91c04d7b\n"
    "\b\nExit codes:\n"
    "  0  done, or it was so already\n"
    "  1  no evaluation of that ID is applied\n"
    "  2  wrong usage, results that show nothing of any one model, or too few tasks without --yes",
)
@click.argument(
    "results",
    required=False,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
)
@click.option(
    "--mode", type=click.Choice(get_args(Mode)), help="Results of this mode, where there are both."
)
@click.option("--strict/--lenient", default=None, help="The same of strict grading.")
@click.option(
    "--model", "models", multiple=True, metavar="ID", help="This model alone; may be repeated."
)
@click.option(
    "--task",
    type=click.Choice(get_args(TaskKind)),
    default="coding",
    show_default=True,
    help="Requests of this kind are routed by it.",
)
@click.option(
    "--beside",
    is_flag=True,
    help="Rank it beside what counts already, though that was measured on other tasks.",
)
@click.option(
    "--yes",
    "insists",
    is_flag=True,
    help=f"Apply it though it rests on less than {FEWEST_TASKS} tasks.",
)
@click.option("--undo", metavar="ID", help="Take an evaluation back, by its id or how that begins.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@server_option
@json_option
@config_option
def apply(
    *,
    results: Path | None,
    mode: Mode | None,
    strict: bool | None,
    models: tuple[str, ...],
    task: TaskKind,
    beside: bool,
    insists: bool,
    undo: str | None,
    dry_run: bool,
    server: str | None,
    as_json: bool,
    config: Path | None,
) -> int:
    """Let `optimize: quality` go by what RESULTS show of each model; without RESULTS, list.

    Counted is what a model did alone, in an arm of its own or one in which no other was asked, on
    the tasks that every model was graded on; those that `turnout eval check` found unsound are
    left out. Shown is whom requests go to before and after, under each policy and for each
    objective. What a model was shown to solve with the tests in sight is never ranked against what
    others solved without: the last evaluation says which of the two counts. Nor is what was shown
    on one set of tasks ranked against what was shown on another, unless you say --beside. It says
    whether the models are told apart at all; what rests on less than ten tasks takes --yes.
    """
    if undo is not None and results is not None:
        raise UsageError("RESULTS and --undo do not go together.", mend="Leave one of them out.")
    desk = _Desk(service_address(server) or read_settings(config), dry_run=dry_run)
    if undo is not None:
        undo, preview = asyncio.run(desk.undo(undo))
        done = "It would not count any more." if dry_run else f"{undo} counts no more."
        body: JsonObject = {"undone": undo, "dry_run": dry_run, "preview": _plain(preview)}
        _say(body, [preview_text(preview), done], as_json=as_json)
        return 0
    if results is None:
        listed = asyncio.run(desk.applied())
        _say(_plain(listed), [applied_text(listed)], as_json=as_json)
        return 0
    check = check_of([results], None)
    kept = read_results(results)
    wish = Wish(
        results.name,
        task,
        mode,
        strict,
        models,
        check.unfit if check else (),
        kept.conditions,
        beside,
    )
    shown = evaluation_of(kept.trials, wish, SystemClock().now())
    if shown.too_few and not (insists or dry_run):
        raise UsageError(
            f"{shown.too_few} Nothing was changed.",
            mend="Run more of them; or look with --dry-run, and apply it all the same: --yes",
        )
    applied = asyncio.run(desk.apply(shown.evaluation))
    _say_applied(shown, applied, dry_run=dry_run, as_json=as_json)
    return 0


class _Desk:
    """Where evaluations are applied: a service, or the store of this machine."""

    def __init__(self, place: Settings | ServiceAddress, *, dry_run: bool) -> None:
        self._place = place
        self._dry_run = dry_run

    async def applied(self) -> EvaluationsOut:
        """Return what is applied."""

        async def here(office: EvaluationOffice) -> EvaluationsOut:
            return EvaluationsOut.of(await office.desk.applied())

        return await self._do(EvaluationsOut, lambda client: client.applied(), here)

    async def apply(self, evaluation: Evaluation) -> AppliedOut:
        """Apply an evaluation, or say what that would change."""
        body = _body(evaluation)

        async def there(client: EvaluationsClient) -> JsonObject:
            if self._dry_run:
                return {"changed": False, "preview": await client.preview(body)}
            return await client.apply(body)

        async def here(office: EvaluationOffice) -> AppliedOut:
            if self._dry_run:
                preview = PreviewOut.of(await office.desk.preview(evaluation))
                return AppliedOut(changed=False, preview=preview)
            applied = await office.desk.apply(evaluation, office.author)
            return AppliedOut(changed=applied.changed, preview=PreviewOut.of(applied.preview))

        return await self._do(AppliedOut, there, here)

    async def undo(self, named: str) -> tuple[str, PreviewOut]:
        """Take an evaluation back, or say what that would change; return its id as well.

        It is named by its id, or by how no other id of those applied begins.
        """
        known = [each.id for each in (await self.applied()).evaluations]
        begun = [each for each in known if each.startswith(named)] if named else []
        evaluation_id = begun[0] if named not in known and len(begun) == 1 else named

        async def there(client: EvaluationsClient) -> JsonObject:
            ask = client.preview_undo if self._dry_run else client.undo
            return await ask(evaluation_id)

        async def here(office: EvaluationOffice) -> PreviewOut:
            ask = office.desk.preview_undo if self._dry_run else office.desk.undo
            return PreviewOut.of(await ask(evaluation_id))

        return evaluation_id, await self._do(PreviewOut, there, here)

    async def _do(
        self,
        view: type[View],
        there: Callable[[EvaluationsClient], Awaitable[JsonObject]],
        here: Callable[[EvaluationOffice], Awaitable[View]],
    ) -> View:
        if isinstance(self._place, Settings):
            async with open_evaluations(self._place) as office:
                return await here(office)
        async with EvaluationsClient(self._place) as client:
            answer = await there(client)
        try:
            return view.model_validate(answer)
        except ValidationError as error:
            raise GatewayError(
                "The service answered oddly: its answer cannot be read.",
                status=502,
                code="invalid_reply",
            ) from error


def _body(evaluation: Evaluation) -> JsonObject:
    return {
        "id": evaluation.id,
        "task": evaluation.task,
        "mode": evaluation.mode,
        "at": evaluation.at.isoformat(),
        "source": evaluation.source,
        "scores": [
            {"subject": score.subject, "solved": score.solved, "tried": score.tried}
            for score in evaluation.scores
        ],
        "tasks": evaluation.tasks,
        "beside": evaluation.beside,
    }


def _say_applied(shown: Shown, applied: AppliedOut, *, dry_run: bool, as_json: bool) -> None:
    evaluation = shown.evaluation
    if dry_run:
        done = "Nothing is changed: this is a dry run."
    elif applied.changed:
        done = f"Routing goes by it now. Take it back: turnout eval apply --undo {evaluation.id}"
    else:
        done = "Routing goes by it already."
    body: JsonObject = {
        "evaluation": _plain(EvaluationOut.of(evaluation)),
        "notes": list(shown.notes),
        "ranking": shown.ranking,
        "dry_run": dry_run,
        "changed": applied.changed,
        "preview": _plain(applied.preview),
    }
    beside = beside_text(evaluation, applied.preview)
    _say(
        body,
        [
            scores_text(evaluation),
            shown.ranking,
            *shown.notes,
            preview_text(applied.preview),
            beside,
            done,
        ],
        as_json=as_json,
    )


def _plain(view: BaseModel) -> JsonObject:
    return as_object(view.model_dump(mode="json"))


def _say(body: JsonObject, parts: list[str], *, as_json: bool) -> None:
    if as_json:
        say_json(body)
    else:
        click.echo(safe("\n".join(filter(None, parts))))
