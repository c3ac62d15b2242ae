"""Changes over HTTP are put on record before they are answered; `/audit` reads them back."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Final, Protocol

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from turnout.core.clock import Clock
from turnout.core.govern.audit import Audited, AuditFilter, AuditPage
from turnout.core.govern.moments import moment_of
from turnout.errors import StoreError
from turnout.gateway.admin.callers import AdminDep
from turnout.gateway.admin.errors import REFUSALS, refusal
from turnout.gateway.admin.usage import MomentText, NameText

__all__ = [
    "AuditAsk",
    "AuditBook",
    "AuditLineOut",
    "AuditOut",
    "Watch",
    "audit_router",
    "unchanged",
]

_CHANGING: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_ASKING: Final = frozenset({"check_policy", "explain_route"})
"""Routes that change nothing, though they take a body."""
_KEPT: Final = frozenset(
    {"admin", "base", "call_id", "policies", "policy", "project", "repo", "revision", "role"}
)
"""Fields of a body that are kept as they are; of others it is kept that they were there."""
_LONGEST: Final = 256


class AuditBook(Protocol):
    """Keeps changes."""

    async def add(self, change: Audited) -> None:
        """Write a change durably."""
        ...

    async def page(self, wanted: AuditFilter, *, before: int | None, limit: int) -> AuditPage:
        """Return changes that are wanted, newest first, from before a number."""
        ...


class Watch:
    """Puts on record who changed what, whichever route it was; it goes inside of `Gate`.

    The change was made by then: where it cannot be put on record, the answer is 503.
    """

    def __init__(self, app: ASGIApp, audit: AuditBook, clock: Clock) -> None:
        self._app = app
        self._audit = audit
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["method"] not in _CHANGING:
            await self._app(scope, receive, send)
            return
        body = bytearray()
        unwritten = False

        async def reading() -> Message:
            message = await receive()
            body.extend(message.get("body", b""))
            return message

        async def sending(message: Message) -> None:
            nonlocal unwritten
            if message["type"] == "http.response.start" and _changed(scope, message["status"]):
                try:
                    await self._note(scope, bytes(body), Headers(raw=message["headers"]))
                except StoreError as error:
                    unwritten = True
                    await refusal(error)(scope, receive, send)
            if not unwritten:
                await send(message)

        await self._app(scope, reading, sending)

    async def _note(self, scope: Scope, body: bytes, answered: Headers) -> None:
        caller = scope.get("state", {}).get("caller")
        action = getattr(scope.get("route"), "name", "")
        if caller is None or not action or action in _ASKING:
            return
        named = [str(value) for value in scope.get("path_params", {}).values()]
        subject = "/".join(named) or answered.get("location", "").rpartition("/")[2]
        detail = _detail(body)
        change = Audited(self._clock.now(), caller.key, caller.project, action, subject, detail)
        await self._audit.add(change)


def unchanged(request: Request) -> None:
    """Say that a request has left everything as it was, so that it is no change on record."""
    request.state.unchanged = True


def _changed(scope: Scope, status: int) -> bool:
    """Whether an answer says that something was changed.

    200 from a route that makes something says that it was made before.
    """
    makes = getattr(scope.get("route"), "status_code", None) == HTTPStatus.CREATED
    if status >= HTTPStatus.MULTIPLE_CHOICES or (makes and status == HTTPStatus.OK):
        return False
    return not scope.get("state", {}).get("unchanged", False)


def _detail(body: bytes) -> Mapping[str, str]:
    """Return what a body asked for, without the texts that people and models write."""
    try:
        given = json.loads(body) if body else {}
    except (ValueError, RecursionError):
        return {}
    if not isinstance(given, dict):
        return {}
    plain = {name: _shown(value)[:_LONGEST] for name, value in given.items() if name in _KEPT}
    others = sorted(name[:_LONGEST] for name in given if name not in _KEPT)
    return {**plain, "fields": ", ".join(others)[:_LONGEST]} if others else plain


def _shown(value: Any) -> str:
    """Return a name or number, or the names in a list or table."""
    if isinstance(value, list | dict):
        return ", ".join(name for name in value if isinstance(name, str))
    return value if isinstance(value, str) else json.dumps(value)


class AuditLineOut(BaseModel):
    """A change that was made."""

    number: int
    at: datetime
    actor: str
    """Name of the key, or `NAME@host` where it was made from the command line."""
    project: str
    action: str
    """Name of the operation, such as `order_run`, `approve_call` or `create_key`."""
    subject: str
    """The run, key, policy or webhook; empty where it is about no one of them."""
    detail: Mapping[str, str]


class AuditOut(BaseModel):
    """Some changes, newest first."""

    changes: Sequence[AuditLineOut]
    next_cursor: int | None
    """`cursor` of what follows; null where nothing does."""


class AuditAsk(BaseModel):
    """Which changes are listed."""

    model_config = ConfigDict(extra="forbid")

    actor: NameText = None
    project: NameText = None
    action: NameText = None
    subject: NameText = None
    since: MomentText = None
    cursor: Annotated[int, Field(ge=1, le=2**53)] | None = None
    limit: Annotated[int, Field(ge=1, le=1_000)] = 100


def audit_router(book: AuditBook, clock: Clock) -> APIRouter:
    """Return the route, for admin keys alone."""
    router = APIRouter(prefix="/audit", tags=["audit"], responses=REFUSALS)

    @router.get("")
    async def read_audit(_: AdminDep, asked: Annotated[AuditAsk, Query()]) -> AuditOut:
        """List who changed what, newest first."""
        since = moment_of(asked.since, clock.now()) if asked.since else None
        wanted = AuditFilter(asked.actor, asked.project, asked.action, asked.subject, since)
        page = await book.page(wanted, before=asked.cursor, limit=asked.limit)
        lines = [
            AuditLineOut(
                number=line.number,
                at=line.change.at,
                actor=line.change.actor,
                project=line.change.project,
                action=line.change.action,
                subject=line.change.subject,
                detail=line.change.detail,
            )
            for line in page.lines
        ]
        return AuditOut(changes=lines, next_cursor=page.before)

    return router
