"""Who may call: one shared key, or anyone who can reach a private address."""

import hmac
from collections.abc import Callable, Mapping

from turnout.errors import GatewayError
from turnout.gateway.exchange import Caller

__all__ = ["Authenticate", "check_role", "open_access", "sent_key", "shared_key"]

Authenticate = Callable[[Mapping[str, str]], Caller]
"""Takes the headers of a request, names in lower case; `GatewayError` (401, 403) refuses it."""

_LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]", "gateway")


def shared_key(key: str, *, name: str = "shared") -> Authenticate:
    """Admit whoever sends `key` as bearer token, `x-api-key` or `api-key`."""
    wanted = key.encode()
    if not wanted:
        raise ValueError("an empty key admits everybody; use open_access")

    def authenticate(headers: Mapping[str, str]) -> Caller:
        if hmac.compare_digest(sent_key(headers).encode(), wanted):
            return Caller(name, role="approver")
        raise GatewayError(
            "The API key is missing or wrong.",
            status=401,
            code="invalid_api_key",
            mend="Send it as `Authorization: Bearer KEY`.",
        )

    return authenticate


def open_access(*, name: str = "local", hosts: tuple[str, ...] = _LOCAL_HOSTS) -> Authenticate:
    """Admit every program that can connect; for loopback and unix sockets only.

    Web pages can reach loopback too, through the browser of whoever opens them: a request with
    an `Origin`, or for a host name other than ours, is refused.
    """

    def authenticate(headers: Mapping[str, str]) -> Caller:
        host = headers.get("host", "")
        bare = host if host.endswith("]") else host.rpartition(":")[0] or host
        if "origin" in headers or bare not in hosts:
            raise GatewayError(
                "Without a key this gateway serves programs on this machine only.",
                status=403,
                code="origin_not_allowed",
                mend=f"Call it as {hosts[0]} from outside a browser, or set a key.",
            )
        return Caller(name, role="approver")

    return authenticate


def check_role(caller: Caller) -> None:
    """Refuse (403) a model call of a key that only reads runs."""
    if caller.role == "viewer":
        raise GatewayError(
            "This key reads runs and asks no model.",
            status=403,
            code="role_not_allowed",
            mend="Use a key of another role; `turnout keys update NAME --role` changes it.",
        )


def sent_key(headers: Mapping[str, str]) -> str:
    """Return the key that a request carries, its header names in lower case; empty: none."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    return headers.get("x-api-key") or headers.get("api-key") or ""
