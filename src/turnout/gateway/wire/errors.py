"""Errors in the shape that chat completions clients read."""

import math
from dataclasses import dataclass, field

import orjson

from turnout.core.json import JsonValue
from turnout.errors import GatewayError, TurnoutError
from turnout.gateway.exchange import UpstreamError

__all__ = ["ErrorReply", "error_code", "write_error"]

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "insufficient_quota",
    403: "permission_error",
    404: "invalid_request_error",
    409: "conflict_error",
    413: "invalid_request_error",
    429: "rate_limit_error",
}
_LONGEST_WAIT = 60
_FINAL_CODES = frozenset({"no_eligible_model", "provider_refused", "session_request_cap"})
"""Refusals that no retry can lift, though their status makes clients retry."""


@dataclass(frozen=True, slots=True)
class ErrorReply:
    """An error as it goes to the client."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


def write_error(error: TurnoutError | UpstreamError) -> ErrorReply:
    """Return what the client reads; an upstream's own body of this shape stays as it came."""
    if isinstance(error, UpstreamError):
        status = error.status or 502
        body = error.body or _shape(str(error), status, error_code(error), None)
        return ErrorReply(status, body, _retry_headers(error.retry_after))
    if isinstance(error, GatewayError):
        headers = _retry_headers(error.retry_after)
        if error.code in _FINAL_CODES:
            headers["x-should-retry"] = "false"
        body = _shape(str(error), error.status, error.code, error.param)
        return ErrorReply(error.status, body, headers)
    return ErrorReply(500, _shape(str(error), 500, error_code(error), None))


def error_code(error: TurnoutError | UpstreamError) -> str:
    """Return the machine-readable reason, as it also stands on the receipt."""
    if isinstance(error, GatewayError):
        return error.code
    return "upstream_error" if isinstance(error, UpstreamError) else "internal_error"


def _shape(message: str, status: int, code: str, param: str | None) -> bytes:
    detail: dict[str, JsonValue] = {
        "message": message,
        "type": _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error"),
        "param": param,
        "code": code,
    }
    return orjson.dumps({"error": detail})


def _retry_headers(seconds: float | None) -> dict[str, str]:
    if seconds is None:
        return {}
    headers = {"retry-after": str(math.ceil(seconds))}
    # Some SDKs take a longer wait for none and try again at once.
    return headers if seconds <= _LONGEST_WAIT else {**headers, "x-should-retry": "false"}
