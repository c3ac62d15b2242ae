"""Who calls an admin route, known before anything of its body is read."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Final

from fastapi import Depends, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from turnout.core.json import doubled_name
from turnout.errors import GatewayError, TurnoutError
from turnout.gateway.access import Authenticate
from turnout.gateway.admin.errors import refusal
from turnout.gateway.delivery import AppLimits, ClientGoneError, header_map, read_body
from turnout.gateway.exchange import Caller

__all__ = ["AdminDep", "AgainDep", "CallerDep", "Gate", "admin_required", "may_see"]

_OPEN: Final = "/openapi.json"
"""Takes no key: it says how to call the others."""
_SIGNED: Final = re.compile(r"/forges/[^/]+/webhook")
"""Nobody has a key there: what is sent is signed."""
_LARGEST_SIGNED: Final = 2 * 2**20
"""Of what may come from anybody until its signature is checked."""

_CHARSET: Final = re.compile(r";\s*charset\s*=\s*[\"']?([^\s;\"']*)", re.IGNORECASE)
_PLAIN: Final = frozenset({"ascii", "us-ascii", "utf-8", "utf8"})
_SHOWN: Final = 100


class Gate:
    """Lets nobody through without a key, and no body that is too large or too slow.

    Routes for what is signed check that by themselves.
    """

    def __init__(self, app: ASGIApp, authenticate: Authenticate, limits: AppLimits) -> None:
        self._app = app
        self._authenticate = authenticate
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers, limits = header_map(scope), self._limits
        # The whole path below the prefix: the name of a key or a policy may be any.
        path: str = scope["path"].removeprefix(scope.get("root_path", ""))
        signed = _SIGNED.fullmatch(path) is not None
        try:
            if signed:
                limits = replace(limits, body_bytes=min(limits.body_bytes, _LARGEST_SIGNED))
            elif path != _OPEN:
                again = partial(self._authenticate, headers)
                scope.setdefault("state", {}).update(caller=again(), again=again)
            body = await read_body(receive, headers, limits)
            if not signed:
                _check_plain(headers, body)
        except TurnoutError as error:
            await refusal(error)(scope, receive, send)
            return
        except ClientGoneError:
            return
        await self._app(scope, _first(body, receive), send)


def _check_plain(headers: Mapping[str, str], body: bytes) -> None:
    """Refuse (400) a body that others may read otherwise than we do."""
    charset = _CHARSET.search(headers.get("content-type", ""))
    if (charset and charset[1].lower() not in _PLAIN) or not _is_utf8(body):
        raise GatewayError(
            "The body is not in UTF-8.",
            status=400,
            code="invalid_request",
            mend="Send JSON in UTF-8, with `content-type: application/json`.",
        )
    name = doubled_name(body)
    if name is not None:
        said = f"The body has the name {name[:_SHOWN]!r} twice in one object."
        raise GatewayError(said, status=400, code="invalid_request")


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    # JSON has NULs in UTF-16 and UTF-32 alone.
    return b"\0" not in body


def _first(body: bytes, then: Receive) -> Receive:
    """Return what gives the body that was read, and then what comes after it."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return waiting.pop() if waiting else await then()

    return receive


def _again(request: Request) -> Callable[[], Caller]:
    again: Callable[[], Caller] = request.state.again
    return again


def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


CallerDep = Annotated[Caller, Depends(_caller)]
"""Whoever calls: any valid key."""

AgainDep = Annotated[Callable[[], Caller], Depends(_again)]
"""Tells who calls once more; `GatewayError` (401) where the key was shut since."""


def _admin(caller: CallerDep) -> Caller:
    if not caller.admin:
        raise admin_required()
    return caller


def admin_required() -> GatewayError:
    """Return the refusal (403) of a key that is none of an admin."""
    return GatewayError(
        "This takes a key with admin rights.",
        status=403,
        code="admin_required",
        mend="Create one with `turnout keys create NAME --admin`.",
    )


AdminDep = Annotated[Caller, Depends(_admin)]
"""Whoever calls, with a key that may read and change what governs everybody."""


def may_see(caller: Caller, policy: str, default: str) -> bool:
    """Return whether a policy is one of the caller's own."""
    return caller.admin or policy in (caller.policies or (default,))
