"""The one error body of the admin routes; that of the chat routes is the same."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response

from turnout.core.json import ascii_json
from turnout.errors import (
    ConflictError,
    FullError,
    GatewayError,
    NotFoundError,
    StoreError,
    TurnoutError,
    UsageError,
)
from turnout.gateway.config.tables import dotted, plain_words
from turnout.gateway.wire.errors import error_text, retry_headers

__all__ = [
    "REFUSALS",
    "ErrorBody",
    "ErrorDetail",
    "invalid_body",
    "no_such_route",
    "refusal",
    "refused",
    "status_of",
]

_TYPES: Final[Mapping[int, str]] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    429: "rate_limit_error",
}


_POSTS: Final = ("/chat/completions", "/messages", "/messages/count_tokens", "/responses")
"""Model routes, which another method than theirs leads here."""


_WAIT: Final = "30"
"""Seconds after which a queue that is full may have room."""
_OBJECT: Final = "must be a JSON object"
_PLAINER: Final[Mapping[str, str]] = {
    "extra_forbidden": "is no field here",
    "missing": "is missing",
    "dict_type": _OBJECT,
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
}


class ErrorDetail(BaseModel):
    """What went wrong."""

    message: str
    """What is wrong, and what to do about it."""
    type: str
    param: str | None
    """The field that is wrong; null where it is not one field."""
    code: str
    """The machine-readable reason."""


class ErrorBody(BaseModel):
    """Every answer that is not a success."""

    error: ErrorDetail


REFUSALS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"model": ErrorBody, "description": HTTPStatus(status).phrase}
    for status in (400, 401, 403, 404, 409, 413, 429, 503)
}
"""What every route may answer beside its own, for its `responses`."""


def refusal(error: TurnoutError) -> Response:
    """Return the answer to a request that failed."""
    status, code, param = _standing(error)
    headers = {"retry-after": _WAIT} if isinstance(error, FullError) else retry_headers(error)
    return _answer(status, error_text(error), code, param, headers)


def status_of(error: TurnoutError) -> int:
    """Return the status that a request is answered with which failed so."""
    return _standing(error)[0]


def _standing(error: TurnoutError) -> tuple[int, str, str | None]:
    """Return the status and the code of an error, and the field that it is about."""
    match error:
        case GatewayError():
            return error.status, error.code, error.param
        case UsageError():
            return 400, "invalid_request", None
        case NotFoundError():
            return 404, "not_found", None
        case ConflictError():
            return 409, "revision_conflict", None
        case FullError():
            return 429, "too_many_queued", None
        case StoreError():
            return 503, "store_unavailable", None
        case _:
            return 500, "internal_error", None


async def refused(_: Request, error: Exception) -> Response:
    """Answer for an error that was raised on purpose."""
    if not isinstance(error, TurnoutError):
        raise error
    return refusal(error)


async def invalid_body(_: Request, error: Exception) -> Response:
    """Answer a request whose body or parameters are not as documented: 400."""
    if not isinstance(error, RequestValidationError):
        raise error
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        why = str(first.get("ctx", {}).get("error", "")).lower()
        said = f"The body is not JSON, at character {first['loc'][-1]}: {why}."
        return _answer(400, said, "invalid_request", None)
    place = first["loc"]
    path = dotted("", place[1:])
    wrong = _PLAINER.get(first["type"]) or plain_words(first)
    said = f"`{path}` {wrong}." if path else f"The {place[0]} {wrong}."
    if len(place) == 1:
        said += " Send JSON with `content-type: application/json`."
    return _answer(400, said, "invalid_request", path or None)


async def no_such_route(request: Request, error: Exception) -> Response:
    """Answer what no route takes."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    if status == 400:
        return _answer(400, "The body is not JSON.", "invalid_request", None, headers)
    path: str = request.scope["path"]
    if status == 404 and path.endswith(_POSTS) and request.method != "POST":
        status, headers = 405, {"allow": "POST"}
    said = f"{request.method} {path} is not served here."
    code = "method_not_allowed" if status == 405 else "route_not_found"
    return _answer(status, said, code, None, headers)


def _answer(
    status: int,
    message: str,
    code: str,
    param: str | None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    body = {"error": {"message": message, "type": kind, "param": param, "code": code}}
    return Response(ascii_json(body), status, headers, media_type="application/json")
