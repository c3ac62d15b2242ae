"""`/evaluations`: what routing goes by, applied and taken back."""

from typing import Annotated, Self

from fastapi import APIRouter, Path, Request, Response
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from turnout.core.govern.evidence import Evaluation, Score, TestsSeen
from turnout.core.inference import TaskKind
from turnout.gateway.admin.audit import unchanged
from turnout.gateway.admin.callers import AdminDep, CallerDep
from turnout.gateway.admin.errors import REFUSALS
from turnout.gateway.evaluations.desk import EvaluationDesk
from turnout.gateway.evaluations.views import AppliedOut, EvaluationsOut, PreviewOut

__all__ = ["EvaluationIn", "ScoreIn", "evaluations_router"]

_MOST_TRIED = 10**6
_MOST_SCORES = 200

_Id = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[a-z0-9-]+$")]
_PathId = Annotated[str, Path(min_length=1, max_length=64, description="Id of the evaluation.")]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class ScoreIn(_Body):
    """How many tasks one model has solved."""

    subject: str = Field(min_length=1, max_length=256, description="Id of a model or deployment.")
    solved: int = Field(ge=0, le=_MOST_TRIED)
    tried: int = Field(ge=1, le=_MOST_TRIED)

    @model_validator(mode="after")
    def _no_more_than_tried(self) -> Self:
        if self.solved > self.tried:
            raise ValueError("`solved` is more than `tried`")
        return self


class EvaluationIn(_Body):
    """What was measured, of all models on the same tasks and in the same way."""

    id: _Id
    task: TaskKind
    mode: TestsSeen = Field(description="Whether the models saw the tests that graded them.")
    # JSON has no moments: they are text.
    at: Annotated[AwareDatetime, Field(strict=False)]
    source: str = Field(max_length=500, description="What was evaluated, for people.")
    scores: list[ScoreIn] = Field(min_length=1, max_length=_MOST_SCORES)
    tasks: str = Field(
        default="",
        max_length=64,
        description="Digest of the set of tasks. Figures of different sets are not ranked "
        "together; without it, those of no other evaluation are.",
    )
    beside: bool = Field(
        default=False,
        description="Rank it beside what counts already, though that is of other tasks.",
    )

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        if len({score.subject for score in self.scores}) < len(self.scores):
            raise ValueError("`scores` has one subject twice")
        return self

    def evaluation(self) -> Evaluation:
        """Return what it says."""
        scores = tuple(Score(each.subject, each.solved, each.tried) for each in self.scores)
        return Evaluation(
            self.id,
            self.task,
            self.mode,
            self.at,
            self.source,
            scores,
            tasks=self.tasks,
            beside=self.beside,
        )


def evaluations_router(desk: EvaluationDesk) -> APIRouter:
    """Return the routes: any key reads what counts, an admin key does the rest."""
    router = APIRouter(prefix="/evaluations", tags=["evaluations"], responses=REFUSALS)

    @router.get("")
    async def list_evaluations(_: CallerDep) -> EvaluationsOut:
        """List what is applied, and what of it counts."""
        return EvaluationsOut.of(await desk.applied())

    @router.post("/preview")
    async def preview_evaluation(body: EvaluationIn, _: AdminDep, request: Request) -> PreviewOut:
        """Say whom requests would go to if routing went by an evaluation; nothing changes."""
        unchanged(request)
        return PreviewOut.of(await desk.preview(body.evaluation()))

    @router.post("")
    async def apply_evaluation(
        body: EvaluationIn, caller: AdminDep, request: Request, response: Response
    ) -> AppliedOut:
        """Let routing go by an evaluation, here at once and in other processes within seconds."""
        applied = await desk.apply(body.evaluation(), caller.key)
        response.headers["location"] = f"/v1/evaluations/{body.id}"
        if not applied.changed:
            unchanged(request)
        return AppliedOut(changed=applied.changed, preview=PreviewOut.of(applied.preview))

    @router.get("/{evaluation_id}/undo")
    async def preview_undo(evaluation_id: _PathId, _: AdminDep) -> PreviewOut:
        """Say whom requests would go to if an evaluation were taken back; nothing changes."""
        return PreviewOut.of(await desk.preview_undo(evaluation_id))

    @router.delete("/{evaluation_id}")
    async def undo_evaluation(evaluation_id: _PathId, _: AdminDep) -> PreviewOut:
        """Take an evaluation back: what counted before it counts again."""
        return PreviewOut.of(await desk.undo(evaluation_id))

    return router
