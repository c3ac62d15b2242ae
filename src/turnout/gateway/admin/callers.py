"""Who calls an admin route, known before anything of its body is read."""

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
"""The one path that takes no key: it says how to call the others."""


class Gate:
    """Lets nobody through without a key, and no body that is too large or too slow."""

    def __init__(self, app: ASGIApp, authenticate: Authenticate, limits: AppLimits) -> None:
        self._app = app
        self._authenticate = authenticate
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = header_map(scope)
        try:
            if not scope["path"].endswith(_OPEN):
                scope.setdefault("state", {})["caller"] = self._authenticate(headers)
            body = await read_body(receive, headers, self._limits)
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
