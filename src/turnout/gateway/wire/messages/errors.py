"""Errors as clients of the messages shape read them."""

import orjson

from turnout.core.json import JsonValue
from turnout.errors import GatewayError, TurnoutError
from turnout.gateway.exchange import UpstreamError
from turnout.gateway.wire.base import ErrorReply
from turnout.gateway.wire.errors import error_code, error_status, error_text, retry_headers

__all__ = ["write_error"]

_OVERLOADED = 529
"""A status that only this API has: its clients know to come back later."""
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    _OVERLOADED: "overloaded_error",
}


def write_error(error: TurnoutError | UpstreamError) -> ErrorReply:
    """Return what the client reads; an upstream's own body of this shape stays as it came."""
    status, headers = error_status(error), retry_headers(error)
    if isinstance(error, UpstreamError):
        if error.body is not None and error.shape == "messages":
            overloaded = b'"overloaded_error"' in error.body
            return ErrorReply(_OVERLOADED if overloaded else status, error.body, headers)
        return ErrorReply(status, _body(error.said or str(error), status, error), headers)
    return ErrorReply(status, _body(error_text(error), status, error), headers)


def _body(message: str, status: int, error: TurnoutError | UpstreamError) -> bytes:
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
    details: dict[str, JsonValue] = {"error_code": error_code(error)}
    if isinstance(error, GatewayError) and error.param is not None:
        details["param"] = error.param
    return orjson.dumps(
        {"type": "error", "error": {"type": kind, "message": message, "details": details}}
    )
