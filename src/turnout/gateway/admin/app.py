"""The application of the admin routes, and the OpenAPI document of all routes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from turnout.core.clock import Clock, SystemClock
from turnout.core.json import ascii_json
from turnout.errors import TurnoutError
from turnout.gateway.access import Authenticate
from turnout.gateway.admin.audit import AuditBook, Watch
from turnout.gateway.admin.callers import Gate
from turnout.gateway.admin.errors import invalid_body, no_such_route, refused
from turnout.gateway.admin.openapi import whole_document
from turnout.gateway.admin.policies import policies_router
from turnout.gateway.admin.route import Explain, route_router
from turnout.gateway.delivery import AppLimits
from turnout.gateway.dialog.conversation import Shape
from turnout.gateway.policy.desk import PolicyDesk
from turnout.gateway.policy.report import ToolReports
from turnout.gateway.wire.base import ClientShape

__all__ = ["AdminParts", "build_admin"]


@dataclass(frozen=True, slots=True)
class AdminParts:
    """What the admin routes work with."""

    authenticate: Authenticate
    policies: PolicyDesk
    explain: Explain
    shapes: Mapping[Shape, ClientShape]
    routers: Sequence[APIRouter] = ()
    """Of keys, usage and whatever else is governed; their paths are below `/v1`."""
    reports: ToolReports | None = None
    audit: AuditBook | None = None
    """Where changes are put on record; None: nowhere."""
    limits: AppLimits = field(default_factory=AppLimits)
    clock: Clock = field(default_factory=SystemClock)
    version: str = "0"
    """What the OpenAPI document says it is of."""


class _AsciiJson(Response):
    """JSON whose text may hold what no UTF-8 can, such as a lone surrogate."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return ascii_json(content).encode()


class _Application(FastAPI):
    """With the routes in its document that are served without it."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = whole_document(super().openapi())
        return self.openapi_schema


def build_admin(parts: AdminParts) -> FastAPI:
    """Return the application of every route below `/v1` that no model route takes.

    It serves `/openapi.json` to anyone, everything else to callers with a key.
    """
    app = _Application(
        title="Turnout gateway",
        version=parts.version,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        default_response_class=_AsciiJson,
        exception_handlers={
            TurnoutError: refused,
            RequestValidationError: invalid_body,
            HTTPException: no_such_route,
        },
    )
    app.include_router(policies_router(parts.policies, parts.reports, parts.clock))
    app.include_router(route_router(parts.shapes, parts.explain))
    for router in parts.routers:
        app.include_router(router)
    if parts.audit is not None:
        app.add_middleware(Watch, audit=parts.audit, clock=parts.clock)
    app.add_middleware(Gate, authenticate=parts.authenticate, limits=parts.limits)
    return app
