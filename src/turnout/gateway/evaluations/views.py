"""Evaluations as JSON, for programs: the routes and the command line show the same."""

from collections.abc import Sequence
from datetime import datetime
from typing import Self

from pydantic import BaseModel, Field

from turnout.core.govern.evidence import Evaluation, QualityResult, TestsSeen, in_force
from turnout.core.inference import Objective, TaskKind
from turnout.gateway.decide.table import lower_bound
from turnout.gateway.evaluations.preview import Preview, RouteChange

__all__ = [
    "AppliedOut",
    "EvaluationOut",
    "EvaluationsOut",
    "PreviewOut",
    "QualityOut",
    "RouteChangeOut",
]


class QualityOut(BaseModel):
    """What counts of one model's quality."""

    subject: str = Field(description="Id of a model, or of a deployment.")
    task: TaskKind
    value: float
    least: float = Field(description="Lower bound of the 95 % interval, which is what ranks.")
    samples: int
    at: datetime
    source: str

    @classmethod
    def of(cls, result: QualityResult) -> Self:
        """Return the view of a result."""
        value = result.solved / result.tried
        return cls(
            subject=result.subject,
            task=result.task,
            value=value,
            least=lower_bound(value, result.tried),
            samples=result.tried,
            at=result.at,
            source=result.source,
        )


class EvaluationOut(BaseModel):
    """One evaluation that is applied."""

    id: str
    task: TaskKind
    mode: TestsSeen
    at: datetime
    source: str
    tasks: str = Field(default="", description="Digest of the set of tasks; empty: unknown.")
    beside: bool = Field(
        default=False, description="Whether it is ranked beside figures of other tasks."
    )
    author: str
    applied_at: datetime | None
    results: list[QualityOut]

    @classmethod
    def of(cls, evaluation: Evaluation) -> Self:
        """Return the view of an evaluation."""
        return cls(
            id=evaluation.id,
            task=evaluation.task,
            mode=evaluation.mode,
            at=evaluation.at,
            source=evaluation.source,
            tasks=evaluation.tasks,
            beside=evaluation.beside,
            author=evaluation.author,
            applied_at=evaluation.applied_at,
            results=list(map(QualityOut.of, evaluation.results())),
        )


class EvaluationsOut(BaseModel):
    """What is applied, the last one first, and what of it counts."""

    evaluations: list[EvaluationOut]
    counting: list[QualityOut]

    @classmethod
    def of(cls, applied: Sequence[Evaluation]) -> Self:
        """Return the view of all that is applied."""
        return cls(
            evaluations=[EvaluationOut.of(each) for each in reversed(applied)],
            counting=list(map(QualityOut.of, in_force(applied))),
        )


class RouteChangeOut(BaseModel):
    """Whom a request of one kind goes to."""

    policy: str
    objective: Objective
    task: TaskKind
    before: str | None
    after: str | None
    changes: bool
    reason: str

    @classmethod
    def of(cls, route: RouteChange) -> Self:
        """Return the view of a change."""
        return cls(
            policy=route.policy,
            objective=route.objective,
            task=route.task,
            before=route.before,
            after=route.after,
            changes=route.changes,
            reason=route.reason,
        )


class PreviewOut(BaseModel):
    """What changes."""

    routes: list[RouteChangeOut]
    counting: list[QualityOut]
    forgotten: list[QualityOut] = Field(
        description="What counted, of models of which nothing counts then."
    )
    unknown: list[str] = Field(description="Models that no deployment has.")

    @classmethod
    def of(cls, preview: Preview) -> Self:
        """Return the view of a preview."""
        return cls(
            routes=list(map(RouteChangeOut.of, preview.routes)),
            counting=list(map(QualityOut.of, preview.counts)),
            forgotten=list(map(QualityOut.of, preview.forgotten)),
            unknown=list(preview.unknown),
        )


class AppliedOut(BaseModel):
    """What became of an evaluation that was to be applied."""

    changed: bool = Field(description="False where it was the last one already.")
    preview: PreviewOut
