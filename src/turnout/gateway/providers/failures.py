"""What an upstream's failure becomes: an `UpstreamError` that never holds a key.

Its message says what the upstream did and leaves the name to whoever shows it.
"""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import aiohttp
import orjson

from turnout.core.json import JsonObject, as_object, as_text
from turnout.gateway.catalog import Provider
from turnout.gateway.dialog.conversation import Shape
from turnout.gateway.exchange import UpstreamError, UpstreamTimeoutError

__all__ = [
    "from_client_error",
    "from_status",
    "in_band",
    "retry_after",
    "unreadable",
    "without_key",
]

_KEPT_HEADERS = ("retry-after", "x-ratelimit-", "x-request-id", "x-should-retry")
_LONGEST_TEXT = 300
_SHORTEST_SECRET = 6
_DIGITS = 3
_LONGEST_NUMBER = 20
_STATUS_OF: Mapping[str, int] = {
    "authentication_error": 401,
    "context_length_exceeded": 400,
    "insufficient_quota": 402,
    "invalid_request_error": 400,
    "not_found_error": 404,
    "overloaded_error": 529,
    "permission_error": 403,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "request_too_large": 413,
    "timeout_error": 504,
}
"""What types and codes of errors in band are as a status; `api_error` and the like are none."""


def from_client_error(
    error: aiohttp.ClientError | TimeoutError, provider: Provider, longest: float
) -> UpstreamError:
    """Return the error for an exchange that broke off; `longest`: seconds that it could take."""
    kind = UpstreamTimeoutError if isinstance(error, TimeoutError) else UpstreamError
    return kind(_what_broke(error, provider, longest), status=None)


def from_status(
    status: int, headers: Mapping[str, str], raw: bytes, provider: Provider, now: datetime
) -> UpstreamError:
    """Return the error for an answer with an error status."""
    raw = without_key(raw, provider)
    body = _parsed(raw)
    kept = {
        name.lower(): value
        for name, value in headers.items()
        # What is no plain text could not be sent on.
        if name.lower().startswith(_KEPT_HEADERS) and value.isascii() and value.isprintable()
    }
    words = _words(body)
    said = _shortened(words) or ("a page of HTML" if raw.lstrip()[:1] == b"<" else "no explanation")
    return UpstreamError(
        f"answered {status}: {said}",
        status=status,
        retry_after=retry_after(headers, now),
        body=raw if as_object(body.get("error")) else None,
        headers=kept,
        shape=provider.shape,
        said=words,
    )


def in_band(body: JsonObject, shape: Shape) -> UpstreamError:
    """Return the error that an answer with status 200, or an event of it, carries."""
    error = as_object(body.get("error"))
    words = _words(body)
    # An answer that holds an error among other things is not what an error body looks like.
    is_error_body = "object" not in body and "choices" not in body
    return UpstreamError(
        f"failed while answering: {_shortened(words) or 'no explanation'}",
        status=_status_of(error),
        body=orjson.dumps(body) if is_error_body and error else None,
        shape=shape,
        said=words,
    )


def unreadable(what: str) -> UpstreamError:
    """Return the error for an answer that is not what was asked for."""
    return UpstreamError(what, status=None)


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds to wait, from milliseconds, seconds or a date; None where unsaid."""
    lower = {name.lower(): value.strip() for name, value in headers.items()}
    if (milliseconds := _number(lower.get("retry-after-ms", ""))) is not None:
        return milliseconds / 1000
    said = lower.get("retry-after", "")
    if (seconds := _number(said)) is not None:
        return seconds
    try:
        at = parsedate_to_datetime(said)
    except ValueError:
        return None
    return max(0.0, (at.replace(tzinfo=at.tzinfo or UTC) - now).total_seconds())


def _number(text: str) -> float | None:
    # Digits alone, and not too many: float() would also take "nan", "inf" and negative waits.
    is_number = text.replace(".", "", 1).isdecimal() and text.isascii()
    return float(text) if is_number and len(text) <= _LONGEST_NUMBER else None


def _what_broke(
    error: aiohttp.ClientError | TimeoutError, provider: Provider, longest: float
) -> str:
    match error:
        case aiohttp.ConnectionTimeoutError():
            return f"could not be connected to within {provider.connect_timeout:g} s"
        case aiohttp.ServerTimeoutError():
            return f"sent nothing for {provider.idle_timeout:g} s"
        case TimeoutError():
            return f"was not done after {longest:g} s"
        case aiohttp.ClientConnectorDNSError():
            return "has a host name that does not resolve"
        case aiohttp.ClientConnectorError():
            code = error.os_error.errno
            return f"could not be connected to: {os.strerror(code) if code else 'network error'}"
        case aiohttp.InvalidURL():
            return "has a base URL that is none"
        case _:
            return "broke the connection off"


def _status_of(error: JsonObject) -> int | None:
    """Return the HTTP status that an error in band stands for; None where it does not say."""
    for name in ("code", "status", "type"):
        value = error.get(name)
        if isinstance(value, str) and value.isdecimal() and len(value) == _DIGITS:
            value = int(value)
        if isinstance(value, int) and 400 <= value <= 599:
            return value
        if isinstance(value, str) and value in _STATUS_OF:
            return _STATUS_OF[value]
    return None


def _parsed(raw: bytes) -> JsonObject:
    try:
        return as_object(orjson.loads(raw))
    except orjson.JSONDecodeError:
        return {}


def _words(body: JsonObject) -> str:
    error = body.get("error")
    return (
        as_text(error) or as_text(as_object(error).get("message")) or as_text(body.get("message"))
    )


def _shortened(said: str) -> str:
    return said if len(said) <= _LONGEST_TEXT else f"{said[:_LONGEST_TEXT]}…"


def without_key(raw: bytes, provider: Provider) -> bytes:
    """Return what a provider sent with our key blotted out."""
    key = provider.api_key.encode()
    # Words such as `none`, sent to servers that want any key, are no secret.
    return raw.replace(key, b"[key]") if len(key) >= _SHORTEST_SECRET else raw
