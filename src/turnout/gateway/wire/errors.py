"""What every shape says of an error alike: its code and when to come back."""

import logging
import math
from collections.abc import Mapping
from typing import Final

from turnout.errors import (
    ConflictError,
    FullError,
    GatewayError,
    NotFoundError,
    StoreError,
    TurnoutError,
    UsageError,
)
from turnout.gateway.exchange import UpstreamError

__all__ = ["error_code", "error_status", "error_text", "retry_headers"]

_LONGEST_WAIT = 60
_FINAL_CODES = frozenset({"no_eligible_model", "provider_refused", "session_request_cap"})
"""Refusals that no retry can lift unless they name a time, though their status says so."""
_FOR_CLIENTS: Final = (
    GatewayError,
    UpstreamError,
    UsageError,
    NotFoundError,
    ConflictError,
    FullError,
)
_LOG: Final = logging.getLogger(__name__)
_UPSTREAM_CODES: Mapping[int, str] = {
    400: "invalid_request",
    413: "request_too_large",
    429: "rate_limit_exceeded",
    504: "upstream_timeout",
}


def error_code(error: TurnoutError | UpstreamError) -> str:
    """Return the machine-readable reason, as it also stands on the receipt."""
    if isinstance(error, GatewayError):
        return error.code
    if isinstance(error, UpstreamError):
        return _UPSTREAM_CODES.get(error.status or 0, "upstream_error")
    return "store_unavailable" if isinstance(error, StoreError) else "internal_error"


def error_status(error: TurnoutError | UpstreamError) -> int:
    """Return the HTTP status that the client gets."""
    if isinstance(error, UpstreamError):
        return error.status or 502
    if isinstance(error, GatewayError):
        return error.status
    return 503 if isinstance(error, StoreError) else 500


def error_text(error: TurnoutError | UpstreamError) -> str:
    """Return what the client reads of it.

    What only whoever runs the service can mend goes to the log: it names files and servers.
    """
    if isinstance(error, _FOR_CLIENTS):
        return str(error)
    _LOG.warning("A request failed: %s", error)
    if isinstance(error, StoreError):
        return "The service cannot use its database just now. Try again; its log says why."
    return "The service could not do what was asked. Its log says why."


def retry_headers(error: TurnoutError | UpstreamError) -> dict[str, str]:
    """Return the headers that say whether and when the request may be sent again.

    What an upstream said of its limits goes along.
    """
    if isinstance(error, UpstreamError):
        kept = {k: v for k, v in error.headers.items() if k.startswith("x-")}
        kept.pop("x-request-id", None)
        return kept | _wait(error.retry_after)
    if not isinstance(error, GatewayError):
        return {}
    headers = _wait(error.retry_after)
    final = error.code in _FINAL_CODES and error.retry_after is None
    return headers | {"x-should-retry": "false"} if final else headers


def _wait(seconds: float | None) -> dict[str, str]:
    if seconds is None:
        return {}
    headers = {"retry-after": str(math.ceil(seconds))}
    # Some SDKs take a longer wait for none and try again at once.
    return headers if seconds <= _LONGEST_WAIT else {**headers, "x-should-retry": "false"}
