"""The gateway's HTTP surface: parse, ask the engine, render."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, nullcontext
from typing import Final, assert_never

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from turnout.core.ids import RequestId, new_request_id
from turnout.core.inference import LASTING_HEADER
from turnout.errors import GatewayError, TurnoutError
from turnout.gateway.access import Authenticate, check_role
from turnout.gateway.delivery import (
    AppLimits,
    ClientGoneError,
    Connected,
    error_response,
    header_map,
    read_body,
    send_answer,
    send_events,
)
from turnout.gateway.dialog.conversation import Shape
from turnout.gateway.engine import Engine
from turnout.gateway.exchange import (
    Caller,
    InferenceRequest,
    StreamDelta,
    StreamEnd,
    UpstreamError,
)
from turnout.gateway.wire.base import ClientShape, StreamWriter

__all__ = ["PREFIXES", "AppLimits", "Ready", "build_app", "build_without_models", "health_app"]

PREFIXES: Final = ("/v1", "/api/v1/inference", "/api/v1/inference/v1")
"""Where the routes are served."""

_PATHS: Final[Mapping[str, Shape]] = {
    "/chat/completions": "chat",
    "/messages": "messages",
    "/responses": "responses",
}


Ready = Callable[[], bool]
"""Whether work may come."""


def _always() -> bool:
    return True


def build_app(
    engine: Engine,
    authenticate: Authenticate,
    shapes: Mapping[Shape, ClientShape],
    *,
    routes: Sequence[Route] = (),
    admin: ASGIApp | None = None,
    limits: AppLimits | None = None,
    ready: Ready = _always,
) -> ASGIApp:
    """Return the gateway's application.

    `routes` are served below every prefix, `admin` gets what is left below `/v1`. While it is not
    `ready` others should send their work elsewhere: `/readyz` says so.
    """
    refusals = _Refusals(shapes, _PATHS)
    app = _App(engine, authenticate, shapes, _others(refusals, routes, admin, ready), limits)
    return ServerErrorMiddleware(app, handler=refusals.broken)


def build_without_models(
    shapes: Mapping[Shape, ClientShape], admin: ASGIApp, ready: Ready
) -> ASGIApp:
    """Return what is left of it where no model is asked; `shapes` are those of its errors."""
    refusals = _Refusals(shapes, {})
    return ServerErrorMiddleware(_others(refusals, (), admin, ready), handler=refusals.broken)


class _App:
    """Model calls go straight to the engine; everything else through the router."""

    def __init__(
        self,
        engine: Engine,
        authenticate: Authenticate,
        shapes: Mapping[Shape, ClientShape],
        others: ASGIApp,
        limits: AppLimits | None,
    ) -> None:
        self._engine = engine
        self._authenticate = authenticate
        self._others = others
        self._limits = limits or AppLimits()
        self._served = {
            prefix + path: shapes[shape]
            for prefix in PREFIXES
            for path, shape in _PATHS.items()
            if shape in shapes
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        client = self._served.get(scope["path"]) if scope["type"] == "http" else None
        if client is None or scope["method"] != "POST":
            await self._others(scope, receive, send)
            return
        try:
            await self._infer(client, header_map(scope), receive, send)
        except ClientGoneError:
            return

    async def _infer(
        self, client: ClientShape, headers: Mapping[str, str], receive: Receive, send: Send
    ) -> None:
        request_id = new_request_id()
        own = _own_headers(client, request_id)
        caller: Caller | None = None
        try:
            caller = self._authenticate(headers)
            check_role(caller)
            asked = client.parse(await read_body(receive, headers, self._limits), headers)
        except GatewayError as error:
            await self._engine.turned_away(request_id, caller, client.shape, error)
            reply = client.error(error)
            await send_answer(send, reply.status, reply.body, {**own, **reply.headers})
            return
        try:
            # Whoever comes back for an answer gets it; it is not asked for again.
            lasts = _lasts(asked, headers)
            with nullcontext() if lasts else Connected(receive):
                if asked.stream:
                    await self._stream(client, caller, asked, request_id, send)
                    return
                completion = await self._engine.complete(caller, asked, request_id)
            await send_answer(send, 200, client.write(completion, asked, request_id), own)
        except (TurnoutError, UpstreamError) as error:
            reply = client.error(error)
            await send_answer(send, reply.status, reply.body, {**own, **reply.headers})

    async def _stream(
        self,
        client: ClientShape,
        caller: Caller,
        asked: InferenceRequest,
        request_id: RequestId,
        send: Send,
    ) -> None:
        writer = client.writer(asked, request_id)
        parts = self._engine.stream(caller, asked, request_id)
        headers = _own_headers(client, request_id)
        await send_events(send, _events(parts, writer), writer, headers, self._limits.keep_alive)


def _lasts(asked: InferenceRequest, headers: Mapping[str, str]) -> bool:
    """Whether an answer is fetched even where its client is gone for now."""
    kept = asked.idempotency_key is not None and not asked.stream
    return kept and headers.get(LASTING_HEADER) == "1"


def _own_headers(client: ClientShape, request_id: RequestId) -> dict[str, str]:
    # Anthropic's clients look under a name of their own.
    also = {"request-id": request_id} if client.shape == "messages" else {}
    return {"x-request-id": request_id, **also}


async def _events(
    parts: AsyncGenerator[StreamDelta | StreamEnd, None], writer: StreamWriter
) -> AsyncGenerator[bytes, None]:
    async with aclosing(parts):
        async for part in parts:
            match part:
                case StreamDelta():
                    yield writer.piece(part)
                case StreamEnd():
                    yield writer.end(part)
                case _:
                    assert_never(part)


def _others(
    refusals: "_Refusals", routes: Sequence[Route], admin: ASGIApp | None, ready: Ready
) -> Starlette:
    known: list[BaseRoute] = [*_health(ready)]
    mounted = [*routes, *([Mount("/", app=admin)] if admin is not None else [])]
    longest_first = sorted(PREFIXES, key=len, reverse=True)
    known += [Mount(prefix, routes=mounted) for prefix in longest_first]
    return Starlette(routes=known, exception_handlers={HTTPException: refusals.no_such_route})


def _health(ready: Ready) -> tuple[Route, ...]:
    async def readiness(_: Request) -> Response:
        if ready():
            return Response(b'{"status":"ready"}', media_type="application/json")
        return Response(b'{"status":"not ready"}', 503, media_type="application/json")

    return (
        Route("/readyz", readiness, methods=["GET"]),
        Route("/", _hello, methods=["GET"]),
        Route("/healthz", _hello, methods=["GET"]),
    )


def health_app(ready: Ready) -> ASGIApp:
    """Return the application of a process that serves nothing: whether it lives, and is ready."""
    return Starlette(routes=_health(ready))


class _Refusals:
    """What is said where no route fits, or ours failed."""

    def __init__(self, shapes: Mapping[Shape, ClientShape], served: Mapping[str, Shape]) -> None:
        self._shapes = shapes
        self._served = served

    async def no_such_route(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        code = "method_not_allowed" if status == 405 else "route_not_found"
        headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
        path = request.scope["path"]
        if any(path == prefix + known for prefix in PREFIXES for known in self._served):
            status, code, headers = 405, "method_not_allowed", {"allow": "POST"}
        said = f"{request.method} {path} is not served here."
        mend = f"The model routes are {', '.join(f'/v1{path}' for path in _PATHS)}."
        return self._answer(
            request, GatewayError(said, status=status, code=code, mend=mend), headers
        )

    async def broken(self, request: Request, _: Exception) -> Response:
        said = "The gateway failed; its log says why."
        return self._answer(request, GatewayError(said, status=500, code="internal_error"), {})

    def _answer(
        self, request: Request, error: GatewayError, headers: Mapping[str, str]
    ) -> Response:
        messages = "messages" in self._shapes and "anthropic-version" in request.headers
        client = self._shapes["messages" if messages else "chat"]
        return error_response(client.error(error), headers)


async def _hello(_: Request) -> Response:
    return Response(b'{"status":"ok"}', media_type="application/json")
