"""`/runs/{id}/spend` and `/reconcile`: what a run cost, by its record and by the receipts."""

from collections.abc import Sequence

from fastapi import APIRouter, Request
from pydantic import BaseModel

from turnout.core.ids import RunId
from turnout.gateway.admin.audit import unchanged
from turnout.gateway.admin.errors import REFUSALS
from turnout.runs.durable.ports import RunDesk
from turnout.runs.spend.compare import CallDifference, Reconciled, Why
from turnout.runs.spend.reconcile import Reconciler
from turnout.web.runs.callers import MemberDep, RunPath, ViewerDep

__all__ = ["DifferenceOut", "SpendOut", "spend_router"]


class DifferenceOut(BaseModel):
    """A call of which record and receipts do not say the same."""

    request_id: str
    why: Why
    step: int | None
    """Null where it is not on record."""
    recorded_micros: int | None
    charged_micros: int | None

    @classmethod
    def of(cls, each: CallDifference) -> "DifferenceOut":
        """Return what is shown of a difference."""
        return cls(
            request_id=each.request_id,
            why=each.why,
            step=each.step,
            recorded_micros=each.recorded,
            charged_micros=each.charged,
        )


class SpendOut(BaseModel):
    """What a run's model calls cost, in millionths of a US dollar."""

    run_id: str
    ended: bool
    agrees: bool
    """Whether record and receipts amount to the same, tokens included."""
    corrected: bool
    """Whether the record was put right just now."""
    recorded_micros: int
    charged_micros: int
    """By the receipts; a call whose receipt was deleted counts as it is on record."""
    unknown: int
    """Calls that the gateway died over: what they cost nobody knows."""
    unpriced: int
    """Calls that were served at an unknown price."""
    differences: Sequence[DifferenceOut]

    @classmethod
    def of(cls, found: Reconciled) -> "SpendOut":
        """Return what is shown of a comparison."""
        return cls(
            run_id=found.run_id,
            ended=found.ended,
            agrees=found.agrees,
            corrected=found.corrected,
            recorded_micros=found.recorded,
            charged_micros=found.charged,
            unknown=found.unknown,
            unpriced=found.unpriced,
            differences=[DifferenceOut.of(each) for each in found.differences],
        )


def spend_router(desk: RunDesk, reconciler: Reconciler) -> APIRouter:
    """Return the routes; each sees the runs of one project alone."""
    router = APIRouter(prefix="/runs", tags=["runs"], responses=REFUSALS)

    async def compared(project: str, run_id: RunId, *, write: bool) -> SpendOut:
        await desk.get(project, run_id)
        return SpendOut.of(await reconciler.run(run_id, write=write))

    @router.get("/{run_id}/spend")
    async def read_spend(run_id: RunPath, scope: ViewerDep) -> SpendOut:
        """Compare what a run cost by its record and by the gateway's receipts."""
        return await compared(scope.project, run_id, write=False)

    @router.post("/{run_id}/reconcile")
    async def reconcile_run(run_id: RunPath, scope: MemberDep, request: Request) -> SpendOut:
        """Compare them and, where the run has ended, put its record right by the receipts."""
        found = await compared(scope.project, run_id, write=True)
        if not found.corrected:
            unchanged(request)
        return found

    return router
