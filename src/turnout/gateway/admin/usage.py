"""`/usage`: what model calls used, added up."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from turnout.core.clock import Clock
from turnout.core.govern.moments import moment_of
from turnout.core.govern.usage import (
    MOST_GROUPS,
    MOST_ROWS,
    UsageGroup,
    UsageQuery,
    groups_of,
    usage_object,
)
from turnout.core.ids import SessionId
from turnout.errors import GatewayError
from turnout.gateway.admin.callers import CallerDep
from turnout.gateway.admin.errors import REFUSALS
from turnout.gateway.exchange import Caller
from turnout.gateway.notices.ports import UsageReader

__all__ = [
    "FiguresOut",
    "MomentText",
    "NameText",
    "RowOut",
    "SandboxesOut",
    "UsageAsk",
    "UsageOut",
    "only_own",
    "usage_router",
]

MomentText = Annotated[
    str | None,
    Field(max_length=40, description="`7d`, `12h`, a date, or an ISO 8601 time; UTC."),
]
NameText = Annotated[str | None, Field(max_length=512)]


class FiguresOut(BaseModel):
    """Sums and percentiles over some requests; no percentile where there is nothing to rank."""

    requests: int
    errors: int
    """Refused, failed, truncated and unknown."""
    cost_micros: int
    """Of the requests with a known price, in millionths of a US dollar."""
    unpriced: int
    """Requests that were served at an unknown price, or of which nothing is known."""
    refused: int
    failed: int
    truncated: int
    cancelled: int
    unknown: int
    """Under way when the gateway died: whether they were answered and paid for is not known."""
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    """The part of `input_tokens` that a prompt cache answered."""
    fallbacks: int
    repaired: int
    latency_p50_ms: int | None
    latency_p95_ms: int | None
    ttft_p50_ms: int | None
    """Time to first token, of streams."""
    ttft_p95_ms: int | None


class RowOut(FiguresOut):
    """One group of requests."""

    group: Mapping[str, str | None]
    """A value for each grouping; null where the requests have none."""


class SandboxesOut(BaseModel):
    """What the sandboxes of runs took."""

    segments: int
    """How often a worker's part of a run has told of it."""
    cpu_seconds: float
    memory_mib_seconds: float
    peak_memory_bytes: int | None
    cost_micros: int
    """At the rates of `[sandbox.rates]` at the time."""


class UsageOut(BaseModel):
    """The groups, the most expensive first, and all of them together."""

    by: Sequence[UsageGroup]
    since: datetime | None
    until: datetime | None
    groups: int
    """How many there are, with those beyond the limit."""
    rows: Sequence[RowOut]
    total: FiguresOut
    sandboxes: SandboxesOut
    """Of the runs of the same keys, projects and time."""


class UsageAsk(BaseModel):
    """Which requests are counted, and how they are grouped."""

    model_config = ConfigDict(extra="forbid")

    by: Annotated[list[UsageGroup], Field(min_length=1, max_length=MOST_GROUPS)] = ["session"]
    since: MomentText = None
    until: MomentText = None
    session: NameText = None
    key: NameText = None
    project: NameText = None
    limit: Annotated[int, Field(ge=1, le=MOST_ROWS)] = 20
    """Rows at most; the total counts every request all the same."""


def usage_router(store: UsageReader, clock: Clock) -> APIRouter:
    """Return the route; a key reads its own usage, an admin key everybody's."""
    router = APIRouter(prefix="/usage", tags=["usage"], responses=REFUSALS)

    @router.get("")
    async def read_usage(caller: CallerDep, asked: Annotated[UsageAsk, Query()]) -> UsageOut:
        """Add usage up by session, key, model and what else requests have in common."""
        now, key = clock.now(), only_own(caller, asked.key)
        query = UsageQuery(
            by=groups_of(asked.by, key=key),
            since=moment_of(asked.since, now) if asked.since else None,
            until=moment_of(asked.until, now) if asked.until else None,
            session=SessionId(asked.session) if asked.session is not None else None,
            key=key,
            project=asked.project,
            limit=asked.limit,
        )
        return UsageOut.model_validate(usage_object(query, await store.usage(query)))

    return router


def only_own(caller: Caller, key: str | None) -> str | None:
    """Return the key that is read about; `GatewayError` (403) where it is another's."""
    if caller.admin or key == caller.key:
        return key
    if key is None:
        return caller.key
    raise GatewayError(
        "This key reads about itself alone.",
        status=403,
        code="admin_required",
        param="key",
        mend="Leave `key` out, or use a key with admin rights.",
    )
