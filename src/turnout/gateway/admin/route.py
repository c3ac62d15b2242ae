"""`POST /route`: what would become of a request, without calling any model."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated

import orjson
from fastapi import APIRouter, Query, Request

from turnout.core.json import JsonObject
from turnout.core.policies import Policy
from turnout.core.receipts import Decision
from turnout.errors import GatewayError
from turnout.gateway.admin.callers import CallerDep
from turnout.gateway.admin.errors import REFUSALS
from turnout.gateway.admin.openapi import ROUTE_BODY
from turnout.gateway.config.policy_file import parse_policy
from turnout.gateway.delivery import header_map
from turnout.gateway.dialog.conversation import Shape
from turnout.gateway.exchange import Caller, InferenceRequest
from turnout.gateway.policy.shapes import shape_of
from turnout.gateway.policy.views import RouteOut
from turnout.gateway.wire.base import ClientShape

__all__ = ["Explain", "route_router"]

Explain = Callable[[Caller, InferenceRequest, Policy | None], Awaitable[Decision]]
"""The engine's: the decision for a request, under a draft policy where one is given."""


def route_router(shapes: Mapping[Shape, ClientShape], explain: Explain) -> APIRouter:
    """Return the route."""
    router = APIRouter(tags=["routing"], responses=REFUSALS)

    @router.post("/route", openapi_extra=ROUTE_BODY)
    async def explain_route(
        request: Request,
        caller: CallerDep,
        shape: Annotated[Shape | None, Query(description="Found out where it is not said.")] = None,
    ) -> RouteOut:
        """Return the decision for a request of any shape, or under a draft policy.

        No model is called and nothing is counted. What would be refused is refused.
        """
        headers = header_map(request.scope)
        raw, draft = _unwrapped(await request.body())
        spoken = shape or shape_of(raw, headers)
        if spoken not in shapes:
            raise _invalid(f"The shape {spoken} is not served here.", "shape")
        return RouteOut.of(await explain(caller, shapes[spoken].parse(raw, headers), draft))

    return router


def _unwrapped(raw: bytes) -> tuple[bytes, Policy | None]:
    body = _parsed(raw)
    if "request" not in body:
        return raw, None
    if unknown := next((name for name in body if name not in {"request", "policy"}), None):
        raise _invalid(f"`{unknown[:64]}` does not go beside `request`.", unknown[:64])
    draft = body.get("policy")
    if draft is not None and not isinstance(draft, dict):
        raise _invalid("`policy` must be the table of a policy.", "policy")
    try:
        raw = orjson.dumps(body["request"])
    except orjson.JSONEncodeError as error:
        raise _invalid("`request` nests too deep.", "request") from error
    return raw, None if draft is None else parse_policy(draft)


def _parsed(raw: bytes) -> JsonObject:
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise _invalid(f"The body is not JSON: {error}.", None) from error
    if not isinstance(body, dict):
        raise _invalid("The body must be a JSON object.", None)
    return body


def _invalid(message: str, param: str | None) -> GatewayError:
    return GatewayError(message, status=400, code="invalid_request", param=param)
