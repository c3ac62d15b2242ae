"""The console as one application: who is there, what they may do, and what is shown of it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from turnout.core.clock import Clock, SystemClock
from turnout.core.govern.audit import Audited
from turnout.errors import GatewayError, TurnoutError
from turnout.gateway.admin.audit import AuditBook
from turnout.gateway.delivery import AppLimits, ClientGoneError, header_map, read_body
from turnout.gateway.exchange import Caller
from turnout.web.console.assets import Assets, load_assets
from turnout.web.console.doors import COOKIE, Doorman
from turnout.web.console.failures import Failure, failure_of, page_before
from turnout.web.console.guard import check_origin, check_token, guarded
from turnout.web.console.sections import Change, Done, Page, Section, check_access
from turnout.web.console.sessions.tries import Tries, address_of
from turnout.web.console.signin import (
    SIGN_IN,
    SIGN_OUT,
    SignIn,
    query_of,
    safe_next,
    sign_in_path,
    with_session,
    without,
)
from turnout.web.console.templating import Templates
from turnout.web.console.visits import BASE, Form, Visit, read_form

__all__ = ["ConsoleParts", "build_console", "with_console"]

_LARGEST_FORM: Final = 4 * 2**20
_STREAM: Final = "/live"
"""How the address of what a page is told as it happens ends."""
_Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class ConsoleParts:
    """What the console works with."""

    doorman: Doorman
    audit: AuditBook
    sections: Sequence[Section]
    """In the order of the menu; the first page of the first is where people arrive."""
    keyless: Callable[[], bool] = lambda: False
    """Whether programs of this machine may come in while there is no key."""
    eager: bool = False
    """Whether every template is read, beside the loop, as soon as somebody wants to sign in."""
    clock: Clock = field(default_factory=SystemClock)
    assets: Assets = field(default_factory=load_assets)


def with_console(app: ASGIApp, console: ASGIApp) -> ASGIApp:
    """Return an application that serves the console beside what `app` serves."""
    below = f"{BASE}/"

    async def both(scope: Scope, receive: Receive, send: Send) -> None:
        asked = scope["type"] == "http" and (scope["path"] + "/").startswith(below)
        await (console if asked else app)(scope, receive, send)

    return both


def build_console(parts: ConsoleParts) -> ASGIApp:
    """Return the application that serves every path from `/console` on."""
    templates = Templates(parts.assets, parts.sections, parts.clock)
    desk = _Desk(parts, templates, Tries(parts.clock))
    routes = [
        Route(BASE, _home, methods=["GET"]),
        Route(f"{BASE}/static/{{name:path}}", desk.asset, methods=["GET"]),
        Route(BASE + SIGN_IN, desk.ask, methods=["GET"]),
        Route(BASE + SIGN_IN, desk.sign_in, methods=["POST"]),
        Route(BASE + SIGN_OUT, desk.sign_out, methods=["POST"]),
        Route(f"{BASE}/", desk.first, methods=["GET"]),
    ]
    for section in parts.sections:
        routes += [Route(BASE + p.path, desk.page(p), methods=["GET"]) for p in section.pages]
        routes += [Route(BASE + c.path, desk.change(c), methods=["POST"]) for c in section.changes]
    errors = {TurnoutError: desk.failed, HTTPException: desk.no_page, Exception: desk.failed}
    served = Starlette(routes=routes, exception_handlers=errors)
    # Of an address with one `/` too many it would make another of what `Host` says.
    served.router.redirect_slashes = False

    async def console(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await served(scope, receive, guarded(send))
        except ClientGoneError:
            return

    return console


async def _home(_: Request) -> Response:
    return RedirectResponse(f"{BASE}/", 307)


@dataclass(frozen=True, slots=True)
class _Desk:
    """Where every request of the console comes by."""

    parts: ConsoleParts
    templates: Templates
    tries: Tries

    async def asset(self, request: Request) -> Response:
        return self.parts.assets.answer(request.path_params["name"], query_of(request))

    async def ask(self, request: Request) -> Response:
        self._warm()
        back = safe_next(request.query_params.get("next", "/"))
        return self._sign_in_page(SignIn(back, keyless=self.parts.keyless()))

    async def sign_in(self, request: Request) -> Response:
        check_origin(header_map(request.scope))
        form = await _form(request)
        back = safe_next(form.text("next"))
        address = address_of(request)
        try:
            self.tries.check(address)
            session = self.parts.doorman.sign_in(form.text("key").strip(), _host(request))
        except GatewayError as error:
            if error.status == HTTPStatus.UNAUTHORIZED:
                await self._note_wrong(address)
            failed = SignIn(back, str(error), self.parts.keyless())
            return self._sign_in_page(failed, error.status)
        self._warm()
        return with_session(request, session, back)

    async def sign_out(self, request: Request) -> Response:
        check_origin(header_map(request.scope))
        form = await _form(request)
        token, doorman = request.cookies.get(COOKIE, ""), self.parts.doorman
        everywhere = form.flag("everywhere")
        if everywhere:
            check_token(form.text("csrf"), doorman.csrf(token))
            self._visit(request)
        doorman.sign_out(token, everywhere=everywhere)
        return without(RedirectResponse(BASE + SIGN_IN, 303))

    async def first(self, request: Request) -> Response:
        self._visit(request)
        return RedirectResponse(BASE + self.parts.sections[0].path, 303)

    def page(self, page: Page) -> _Handler:
        async def show(request: Request) -> Response:
            visit = self._visit(request)
            check_access(visit.caller, page.access)
            return await page.show(visit)

        return show

    def change(self, change: Change) -> _Handler:
        async def make(request: Request) -> Response:
            check_origin(header_map(request.scope))
            visit = self._visit(request)
            check_access(visit.caller, change.access)
            form = await _form(request)
            check_token(request.headers.get("x-csrf-token") or form.text("csrf"), visit.csrf)
            done = await change.make(replace(visit, form=form))
            if done.changed:
                await self._note(visit.caller, change.action, done)
            return done.answer

        return make

    async def failed(self, request: Request, error: Exception) -> Response:
        failure = failure_of(error)
        if request.method == "POST":
            failure = replace(failure, back=page_before(header_map(request.scope)))
        if failure.status == HTTPStatus.UNAUTHORIZED:
            return self._away(request, failure)
        return self._failure_page(request, failure)

    async def no_page(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else HTTPStatus.NOT_FOUND
        headers = error.headers if isinstance(error, HTTPException) else None
        answer = self._failure_page(request, Failure(status, "There is no such page."))
        answer.headers.update(headers or {})
        return answer

    def _away(self, request: Request, failure: Failure) -> Response:
        """Send somebody to the sign-in who is not signed in, or no longer.

        A page that asks for a part of itself stays: something may be written there.
        """
        if not request.headers.get("hx-request"):
            path = sign_in_path(request) if request.method == "GET" else BASE + SIGN_IN
            return without(RedirectResponse(path, 303))
        answer = self.templates.open_page("away.html", failure, failure.status)
        if not request.scope["path"].endswith(_STREAM):
            return answer
        # The extension takes nothing but events from one that it asks for again.
        lines = bytes(answer.body).splitlines()
        body = b"".join(b"data: " + line + b"\n" for line in lines) + b"\n"
        return Response(body, media_type="text/event-stream")

    def _failure_page(self, request: Request, failure: Failure) -> Response:
        template = "notice.html" if request.headers.get("hx-request") else "error.html"
        try:
            return self._visit(request).page(template, failure, status=failure.status)
        except GatewayError:
            return self.templates.open_page(template, failure, failure.status)

    def _warm(self) -> None:
        if self.parts.eager:
            asyncio.get_running_loop().run_in_executor(None, self.templates.warm)

    def _sign_in_page(self, view: SignIn, status: int = HTTPStatus.OK) -> Response:
        return self.templates.open_page("signin.html", view, status)

    def _visit(self, request: Request) -> Visit:
        """Return who asks; `GatewayError` (401, 403) where nobody does who may."""
        token = request.cookies.get(COOKIE, "")
        doorman = self.parts.doorman
        again = partial(doorman.recognise, token, _host(request))
        return Visit(request, again(), doorman.csrf(token), self.templates, again)

    async def _note(self, caller: Caller, action: str, done: Done) -> None:
        at = self.parts.clock.now()
        change = Audited(at, caller.key, caller.project, action, done.subject, done.detail)
        await self.parts.audit.add(change)

    async def _note_wrong(self, address: str) -> None:
        times = self.tries.wrong(address)
        if times:
            detail = {"address": address[:100], "times": str(times)}
            at = self.parts.clock.now()
            await self.parts.audit.add(Audited(at, "nobody", "", "sign_in_failed", "", detail))


def _host(request: Request) -> str:
    return request.headers.get("host", "")


async def _form(request: Request) -> Form:
    headers = header_map(request.scope)
    body = await read_body(request.receive, headers, AppLimits(body_bytes=_LARGEST_FORM))
    return read_form(body, headers.get("content-type", ""))
