"""Errors as clients of chat completions read them."""

import orjson

from turnout.core.json import JsonValue
from turnout.errors import GatewayError, TurnoutError
from turnout.gateway.dialog.conversation import Shape
from turnout.gateway.exchange import UpstreamError
from turnout.gateway.wire.base import ErrorReply
from turnout.gateway.wire.errors import error_code, error_status, error_text, retry_headers

__all__ = ["write_error"]

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


def write_error(error: TurnoutError | UpstreamError, shape: Shape = "chat") -> ErrorReply:
    """Return what the client reads; an upstream's own body of this shape stays as it came.

    Both shapes of OpenAI say errors alike.
    """
    status, headers = error_status(error), retry_headers(error)
    if isinstance(error, UpstreamError):
        if error.body is not None and error.shape == shape:
            return ErrorReply(status, error.body, headers)
        return ErrorReply(status, _shape(error.said or str(error), status, error), headers)
    return ErrorReply(status, _shape(error_text(error), status, error), headers)


def _shape(message: str, status: int, error: TurnoutError | UpstreamError) -> bytes:
    detail: dict[str, JsonValue] = {
        "message": message,
        "type": _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error"),
        "param": error.param if isinstance(error, GatewayError) else None,
        "code": error_code(error),
    }
    return orjson.dumps({"error": detail})
