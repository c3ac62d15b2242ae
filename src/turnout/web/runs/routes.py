"""The routes of `/runs`."""

import asyncio
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from turnout.core.ids import RunId, ToolCallId
from turnout.core.runs import Outcome, RunState
from turnout.core.service.orders import Answer, Publish, RunFilter, Submitted
from turnout.errors import GatewayError
from turnout.gateway.admin.audit import unchanged
from turnout.gateway.admin.errors import REFUSALS
from turnout.runs.durable.ports import RunDesk
from turnout.runs.summary import fold
from turnout.runs.trajectory import TrajectoryFormat
from turnout.runs.trajectory.documents import trajectory_json
from turnout.web.runs.callers import ApproverDep, MemberDep, RunPath, Scope, StillDep, ViewerDep
from turnout.web.runs.intake import RunParts, conflicts_as, publish, take, take_again
from turnout.web.runs.orders import RunIn
from turnout.web.runs.streams import Streams, resumed_after
from turnout.web.runs.views import RecordOut, RunDetail, RunOut, RunsOut, record_json

__all__ = ["DecisionIn", "PublishIn", "runs_router"]

_MOST_NUMBER: Final = 2**53

_After = Annotated[
    int, Query(ge=0, le=_MOST_NUMBER, description="`seq` of the last entry that is known.")
]
_Key = Annotated[str | None, Header()]
_DIFF: Final[dict[str, Any]] = {
    "content": {"text/x-diff": {"schema": {"type": "string", "format": "binary"}}},
    "description": "What `git apply` takes; empty where nothing changed.",
}
_TRAJECTORY: Final[dict[str, Any]] = {
    "content": {"application/json": {"schema": {"type": "object"}}},
    "description": "The document, with a file name.",
}
_EVENTS: Final[dict[str, Any]] = {
    "content": {"text/event-stream": {"schema": {"type": "string"}}},
    "description": "One event for each entry, its `seq` as id and an `EntryOut` as data.",
}
_OVER: Final[dict[str, Any]] = {
    "description": "The run has ended and everything was seen: nobody need come back."
}


class DecisionIn(BaseModel):
    """A person's decision on the call that a run waits for."""

    model_config = ConfigDict(extra="forbid")

    call_id: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    """The call that was looked at, so that no other is decided on; else whichever waits."""
    note: Annotated[str, Field(max_length=2_000)] = ""
    """What the model is told with a refusal."""

    def answer(self, by: str, *, allowed: bool) -> Answer:
        """Return it as the service takes it."""
        call = None if self.call_id is None else ToolCallId(self.call_id)
        return Answer(allowed, by, self.note, call)


class PublishIn(BaseModel):
    """What is to become of a run's diff."""

    model_config = ConfigDict(extra="forbid")

    publish: Publish
    """A new branch of its own, or that and a draft of a request to merge it."""


def runs_router(parts: RunParts) -> APIRouter:
    """Return the routes; each sees the runs of one project alone."""
    router = APIRouter(prefix="/runs", tags=["runs"], responses=REFUSALS)
    _add_orders(router, parts)
    _add_decisions(router, parts)
    _add_records(router, parts.desk)
    _add_trajectory(router, parts.desk)
    _add_events(router, parts.desk, parts.streams)
    return router


def _add_orders(router: APIRouter, parts: RunParts) -> None:
    desk = parts.desk

    @router.post("", status_code=201, responses={200: {"model": RunOut}})
    async def order_run(
        body: RunIn, scope: MemberDep, response: Response, idempotency_key: _Key = None
    ) -> RunOut:
        """Order a run: it is durable when this answers 201, and 200 where it was before.

        The same `Idempotency-Key` with the same body stands for the same run, with another body
        it is a conflict (409).
        """
        return _answered(await take(parts, scope, body, idempotency_key), response)

    @router.get("")
    async def list_runs(
        scope: ViewerDep,
        state: Annotated[list[RunState] | None, Query(max_length=10)] = None,
        outcome: Outcome | None = None,
        label: Annotated[str | None, Query(max_length=100)] = None,
        repo: Annotated[str | None, Query(max_length=2_000)] = None,
        cursor: Annotated[int | None, Query(ge=1, le=_MOST_NUMBER)] = None,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
    ) -> RunsOut:
        """List the runs of the project, newest first."""
        wanted = RunFilter(tuple(state or ()), outcome, label=label, repository=repo)
        return RunsOut.of(await desk.page(scope.project, wanted, before=cursor, limit=limit))

    @router.get("/{run_id}")
    async def read_run(run_id: RunPath, scope: ViewerDep) -> RunDetail:
        """Read where a run stands and what it came to so far."""
        run = await desk.get(scope.project, run_id)
        found = await parts.publications([run_id])
        entries = await desk.entries(scope.project, run_id)
        return RunDetail.with_record(run, entries, found.get(run_id))


def _add_decisions(router: APIRouter, parts: RunParts) -> None:
    desk = parts.desk

    @router.post("/{run_id}/cancel")
    async def cancel_run(run_id: RunPath, scope: MemberDep, request: Request) -> RunOut:
        """Stop a run after the step under way; one that has ended stays as it is."""
        before = await desk.get(scope.project, run_id)
        if before.state == "ended" or before.cancel_asked:
            unchanged(request)
        return RunOut.of(await desk.cancel(scope.project, run_id, scope.caller.key))

    @router.post("/{run_id}/retry", status_code=201, responses={200: {"model": RunOut}})
    async def retry_run(
        run_id: RunPath, scope: MemberDep, response: Response, idempotency_key: _Key = None
    ) -> RunOut:
        """Order a run that has ended again, charged to this key and checked as an order of it.

        The same `Idempotency-Key` stands for the same new run.
        """
        return _answered(await take_again(parts, scope, run_id, idempotency_key), response)

    @router.post("/{run_id}/publish")
    async def publish_run(run_id: RunPath, scope: MemberDep, body: PublishIn) -> RunOut:
        """Have the diff of a run that has ended pushed to a new branch, with a draft or without.

        It is 409 before its end, and once that was done.
        """
        return RunOut.of(await publish(parts, scope, run_id, body.publish))

    async def decide(run_id: RunId, scope: Scope, body: DecisionIn | None, allowed: bool) -> RunOut:
        answer = (body or DecisionIn()).answer(scope.caller.key, allowed=allowed)
        with conflicts_as("not_waiting"):
            return RunOut.of(await desk.decide(scope.project, run_id, answer))

    @router.post("/{run_id}/approve")
    async def approve_call(
        run_id: RunPath, scope: ApproverDep, body: DecisionIn | None = None
    ) -> RunOut:
        """Allow the tool call that a run waits for; it goes on, whenever a worker is there."""
        return await decide(run_id, scope, body, True)

    @router.post("/{run_id}/reject")
    async def reject_call(
        run_id: RunPath, scope: ApproverDep, body: DecisionIn | None = None
    ) -> RunOut:
        """Refuse the tool call that a run waits for; the model is told, and goes on."""
        return await decide(run_id, scope, body, False)


def _answered(submitted: Submitted, response: Response) -> RunOut:
    """Answer an order: 201 where it has made a run, 200 where that was there before."""
    run = submitted.run
    response.status_code = 201 if submitted.created else 200
    response.headers["location"] = f"/v1/runs/{run.run_id}"
    return RunOut.of(run)


def _add_records(router: APIRouter, desk: RunDesk) -> None:
    @router.get("/{run_id}/diff", response_class=Response, responses={200: _DIFF})
    async def read_diff(run_id: RunPath, scope: ViewerDep) -> Response:
        """Read the diff of a run; 409 while it has none."""
        run = await desk.get(scope.project, run_id)
        entries = await desk.entries(scope.project, run_id)
        diff = fold(entries).patch.diff if entries else b""
        if not diff and run.state != "ended":
            raise GatewayError(
                "The run has made no diff yet.",
                status=409,
                code="no_diff_yet",
                mend="Follow `/events` until it has ended.",
            )
        # The bytes are in whatever encoding the files have.
        return Response(diff, headers={"content-type": "text/x-diff"})

    @router.get("/{run_id}/record", response_class=Response, responses={200: {"model": RecordOut}})
    async def read_record(
        run_id: RunPath,
        scope: ViewerDep,
        after: _After = 0,
        limit: Annotated[int, Query(ge=1, le=1_000)] = 200,
    ) -> Response:
        """Read the record of a run in parts, oldest entry first."""
        await desk.get(scope.project, run_id)
        entries = await desk.entries(scope.project, run_id, after=after)
        body = record_json(run_id, entries, limit=limit)
        return Response(body, media_type="application/json")


def _add_trajectory(router: APIRouter, desk: RunDesk) -> None:
    @router.get("/{run_id}/trajectory", response_class=Response, responses={200: _TRAJECTORY})
    async def read_trajectory(
        run_id: RunPath,
        scope: ViewerDep,
        wanted: Annotated[TrajectoryFormat, Query(alias="format")] = "atif",
    ) -> Response:
        """Read a run as one document, as far as it is; 409 while nobody has begun it.

        `atif` is the Agent Trajectory Interchange Format, `turnout` the record with its result.
        """
        entries = await desk.entries(scope.project, run_id)
        if not entries:
            raise GatewayError(
                "Nobody has begun the run yet.",
                status=409,
                code="not_begun_yet",
                mend="Follow `/events` until it has ended.",
            )
        body = await asyncio.to_thread(trajectory_json, entries, wanted)
        name = f'attachment; filename="{run_id}.{wanted}.json"'
        headers = {"content-disposition": name}
        return Response(body, media_type="application/json", headers=headers)


def _add_events(router: APIRouter, desk: RunDesk, streams: Streams) -> None:
    @router.get("/{run_id}/events", response_class=Response, responses={200: _EVENTS, 204: _OVER})
    async def follow_run(
        run_id: RunPath,
        scope: ViewerDep,
        still: StillDep,
        after: _After = 0,
        last_event_id: Annotated[str | None, Header()] = None,
    ) -> Response:
        """Follow the record as it grows, as server-sent events, until the run has ended.

        A key that is shut meanwhile ends it.

        A client that was cut off sends `Last-Event-ID` and misses nothing.
        """
        place = resumed_after(last_event_id, after)
        run = await desk.get(scope.project, run_id)
        if run.state == "ended" and not await desk.entries(scope.project, run_id, after=place):
            return Response(status_code=204)
        return streams.of(desk.follow(scope.project, run_id, after=place), still, scope.caller.key)
