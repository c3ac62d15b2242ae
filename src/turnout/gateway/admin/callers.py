"""Who calls an admin route, known before anything of its body is read."""

from dataclasses import replace
from typing import Annotated, Final

from fastapi import Depends, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from turnout.errors import GatewayError, TurnoutError
from turnout.gateway.access import Authenticate
from turnout.gateway.admin.errors import refusal
from turnout.gateway.delivery import AppLimits, ClientGoneError, header_map, read_body
from turnout.gateway.exchange import Caller

__all__ = ["AdminDep", "CallerDep", "Gate", "admin_required", "may_see"]

_OPEN: Final = "/openapi.json"
"""Takes no key: it says how to call the others."""
_SIGNED: Final = "/forges/"
"""Below it nobody has a key: what is sent there is signed."""
_LARGEST_SIGNED: Final = 2 * 2**20
"""Of what may come from anybody until its signature is checked."""


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
        path: str = scope["path"]
        try:
            if path.removeprefix(scope.get("root_path", "")).startswith(_SIGNED):
                limits = replace(limits, body_bytes=min(limits.body_bytes, _LARGEST_SIGNED))
            elif not path.endswith(_OPEN):
                scope.setdefault("state", {})["caller"] = self._authenticate(headers)
            body = await read_body(receive, headers, limits)
        except TurnoutError as error:
            await refusal(error)(scope, receive, send)
            return
        except ClientGoneError:
            return
        await self._app(scope, _first(body, receive), send)


def _first(body: bytes, then: Receive) -> Receive:
    """Return what gives the body that was read, and then what comes after it."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return waiting.pop() if waiting else await then()

    return receive


def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


CallerDep = Annotated[Caller, Depends(_caller)]
"""Whoever calls: any valid key."""


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
