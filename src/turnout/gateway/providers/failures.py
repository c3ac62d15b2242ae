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
from turnout.gateway.exchange import UpstreamError

__all__ = ["from_body", "from_client_error", "from_status", "retry_after", "unreadable"]

_KEPT_HEADERS = ("retry-after", "x-ratelimit-", "x-request-id", "x-should-retry")
_LONGEST_TEXT = 300
_SHORTEST_SECRET = 6


def from_client_error(
    error: aiohttp.ClientError | TimeoutError, provider: Provider
) -> UpstreamError:
    """Return the error for an exchange that broke off."""
    return UpstreamError(
        _what_broke(error, provider), status=None, timed_out=isinstance(error, TimeoutError)
    )


def from_status(
    status: int, headers: Mapping[str, str], raw: bytes, provider: Provider, now: datetime
) -> UpstreamError:
    """Return the error for an answer with an error status."""
    raw = _without_key(raw, provider)
    body = _parsed(raw)
    kept = {k.lower(): v for k, v in headers.items() if k.lower().startswith(_KEPT_HEADERS)}
    said = _said(body) or ("a page of HTML" if raw.lstrip()[:1] == b"<" else "no explanation")
    return UpstreamError(
        f"answered {status}: {said}",
        status=status,
        retry_after=retry_after(headers, now),
        body=raw if body.get("error") else None,
        headers=kept,
    )


def from_body(body: JsonObject, provider: Provider) -> UpstreamError:
    """Return the error that an answer with status 200 carries in its body."""
    raw = _without_key(orjson.dumps(body), provider)
    body = _parsed(raw)
    code = as_object(body.get("error")).get("code")
    known = isinstance(code, int) and 400 <= code <= 599
    return UpstreamError(
        f"failed while answering: {_said(body) or 'no explanation'}",
        status=code if known and isinstance(code, int) else None,
        body=raw,
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
    # Digits alone: float() would also take "nan", "inf" and negative waits.
    return float(text) if text.replace(".", "", 1).isdecimal() and text.isascii() else None


def _what_broke(error: aiohttp.ClientError | TimeoutError, provider: Provider) -> str:
    match error:
        case aiohttp.ConnectionTimeoutError():
            return f"could not be connected to within {provider.connect_timeout:g} s"
        case TimeoutError():
            return f"sent nothing for {provider.idle_timeout:g} s"
        case aiohttp.ClientConnectorDNSError():
            return "has a host name that does not resolve"
        case aiohttp.ClientConnectorError():
            code = error.os_error.errno
            return f"could not be connected to: {os.strerror(code) if code else 'network error'}"
        case aiohttp.InvalidURL():
            return "has a base URL that is none"
        case _:
            return "broke the connection off"


def _parsed(raw: bytes) -> JsonObject:
    try:
        return as_object(orjson.loads(raw))
    except orjson.JSONDecodeError:
        return {}


def _said(body: JsonObject) -> str:
    error = body.get("error")
    said = (
        as_text(error) or as_text(as_object(error).get("message")) or as_text(body.get("message"))
    )
    return said if len(said) <= _LONGEST_TEXT else f"{said[:_LONGEST_TEXT]}…"


def _without_key(raw: bytes, provider: Provider) -> bytes:
    key = provider.api_key.encode()
    # Words such as `none`, sent to servers that want any key, are no secret.
    return raw.replace(key, b"[key]") if len(key) >= _SHORTEST_SECRET else raw
