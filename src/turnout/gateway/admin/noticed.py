"""`/tools` and `/events`: which tools were declared, and what happened."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from turnout.core.clock import Clock
from turnout.core.govern.happenings import HappeningKind
from turnout.core.govern.moments import moment_of
from turnout.core.runs import Outcome, VerdictName
from turnout.gateway.admin.callers import CallerDep
from turnout.gateway.admin.errors import REFUSALS
from turnout.gateway.admin.usage import MomentText, NameText, only_own
from turnout.gateway.notices.ports import HappeningsReader, ToolsReader

__all__ = [
    "EventOut",
    "EventsAsk",
    "EventsOut",
    "ToolOut",
    "ToolsAsk",
    "ToolsOut",
    "noticed_router",
]


class _Out(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class ToolOut(_Out):
    """A tool that requests of one key declared."""

    project: str
    key: str
    tool: str
    first_at: datetime
    last_at: datetime
    requests: int
    """That declared it."""
    calls: int
    """Requests in whose answer a model called it."""


class ToolsOut(BaseModel):
    """The inventory: tools that are new to a key first."""

    tools: Sequence[ToolOut]


class EventOut(_Out):
    """Something that happened, once."""

    id: str
    at: datetime
    kind: HappeningKind
    subject: str
    """The tool, session, deployment, policy or run that it is about."""
    text: str
    project: str
    """Empty where it is about everybody's."""
    key: str
    policy: str
    session: str | None
    request_id: str | None
    outcome: Outcome | None
    """Of a run, once it has ended; so is the verdict."""
    verdict: VerdictName | None


class EventsOut(BaseModel):
    """What happened, newest first."""

    events: Sequence[EventOut]


class _Ask(BaseModel):
    model_config = ConfigDict(extra="forbid")

    key: NameText = None
    limit: Annotated[int, Field(ge=1, le=1_000)] = 100


class ToolsAsk(_Ask):
    """Which tools are listed."""

    project: NameText = None


class EventsAsk(_Ask):
    """Which events are listed."""

    kind: Annotated[list[HappeningKind], Field(max_length=10)] = []
    """Empty: of every kind."""
    since: MomentText = None


def noticed_router(tools: ToolsReader, happenings: HappeningsReader, clock: Clock) -> APIRouter:
    """Return the routes; a key reads what it did itself, an admin key everything."""
    router = APIRouter(tags=["events"], responses=REFUSALS)

    @router.get("/tools")
    async def read_tools(caller: CallerDep, asked: Annotated[ToolsAsk, Query()]) -> ToolsOut:
        """List the tools that were declared, with when each was seen first and last."""
        key = only_own(caller, asked.key)
        found = await tools.inventory(limit=asked.limit, project=asked.project, key=key)
        return ToolsOut(tools=[ToolOut.model_validate(one) for one in found])

    @router.get("/events")
    async def read_events(caller: CallerDep, asked: Annotated[EventsAsk, Query()]) -> EventsOut:
        """List what happened: new tools, tools outside lists, capped sessions, ill deployments."""
        found = await happenings.newest(
            limit=asked.limit,
            kinds=asked.kind,
            key=only_own(caller, asked.key),
            since=moment_of(asked.since, clock.now()) if asked.since else None,
        )
        return EventsOut(events=[EventOut.model_validate(one) for one in found])

    return router
