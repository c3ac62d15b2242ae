"""What every answer forbids the browser, and how a form is told from a forged one."""

import hmac
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from starlette.types import Message, Send

from turnout.errors import GatewayError

__all__ = ["check_origin", "check_token", "guarded"]

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS: Final = (
    (b"content-security-policy", _POLICY.encode()),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    (b"referrer-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)
_PRIVATE: Final = (b"cache-control", b"no-store")


def guarded(send: Send) -> Send:
    """Return what sends answers with the headers that keep a page to itself.

    An answer that says nothing about caches is kept by none.
    """

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = list(message["headers"])
            names = {name.lower() for name, _ in given}
            added = [pair for pair in (*_HEADERS, _PRIVATE) if pair[0] not in names]
            message = {**message, "headers": given + added}
        await send(message)

    return sending


def check_origin(headers: Mapping[str, str]) -> None:
    """Refuse (`GatewayError`, 403) a form that another site's page has sent.

    Names of headers are in lower case. Browsers say where a form comes from, programs need not.
    """
    site = headers.get("sec-fetch-site", "same-origin")
    origin = headers.get("origin")
    same = origin is None or _site_of(origin) == headers.get("host", "")
    if site not in {"same-origin", "none"} or not same:
        raise GatewayError(
            "This form was sent from another site.",
            status=403,
            code="origin_not_allowed",
            mend="Open the page of the console itself, and send it from there.",
        )


def _site_of(origin: str) -> str | None:
    """Return what the site of an address is called; None where it has none."""
    try:
        return urlsplit(origin).netloc or None
    except ValueError:
        return None


def check_token(sent: str, wanted: str) -> None:
    """Refuse (`GatewayError`, 403) a form that no page of the session has made."""
    if not hmac.compare_digest(sent.encode(errors="replace"), wanted.encode()):
        raise GatewayError(
            "This form is not of your session.",
            status=403,
            code="csrf_failed",
            mend="Reload the page and send it again.",
        )
