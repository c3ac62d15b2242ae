"""How a worker on another machine learns what the models can do for a run."""

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Header, Query
from pydantic import BaseModel

from turnout.core.inference import BEHALF_HEADER
from turnout.core.money import Micros
from turnout.errors import GatewayError, ModelUnavailableError
from turnout.gateway.admin.callers import CallerDep
from turnout.gateway.exchange import Caller
from turnout.runs.ports import ModelAccess, StrategyName

__all__ = ["NOT_SERVED", "Access", "ModelWays", "workers_router"]

NOT_SERVED = "order_not_served"
"""Code of the answer (422) that no model may work on a run."""

ModelWays = Callable[[str, Micros | None], ModelAccess]
"""Returns how models are best worked with for whom a token names, under a cap on spend.

Its client is not used. `ModelUnavailableError` where no model may do the job.
"""


class Access(BaseModel):
    """How the models that a run may use are best worked with."""

    strategy: StrategyName
    escalated: StrategyName | None = None
    """With those that act steps get for `quality`; null: likewise."""
    warnings: tuple[str, ...] = ()


_Behalf = Annotated[
    str | None,
    Header(
        alias=BEHALF_HEADER,
        max_length=400,
        description="Who ordered the run: `KEY/PROJECT/POLICY`. Without it only the key is looked "
        "at.",
    ),
]
_Cap = Annotated[int | None, Query(ge=0, le=2**53, description="The run's own cap on spend.")]


def workers_router(ways: ModelWays) -> APIRouter:
    """Return the route that workers ask before they begin; it takes a key of the role `worker`."""
    router = APIRouter(tags=["workers"])

    @router.get("/workers/access")
    async def model_access(
        caller: CallerDep, behalf: _Behalf = None, max_spend_micros: _Cap = None
    ) -> Access:
        """Say how the models that a run may use are best worked with."""
        _check(caller)
        if behalf is None:
            return Access(strategy="loop")
        spend = None if max_spend_micros is None else Micros(max_spend_micros)
        try:
            access = ways(behalf, spend)
        except ModelUnavailableError as error:
            raise GatewayError(
                error.message, status=422, code=NOT_SERVED, mend=error.mend
            ) from error
        return Access(
            strategy=access.strategy, escalated=access.escalated, warnings=access.warnings
        )

    return router


def _check(caller: Caller) -> None:
    # Without any key, programs of this machine may do everything.
    if caller.role != "worker" and caller.key != "local":
        raise GatewayError(
            "This key is none of a worker.",
            status=403,
            code="role_not_allowed",
            mend="Create one with `turnout keys create NAME --role worker`.",
        )
