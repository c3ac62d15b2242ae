"""The gateway's HTTP surface: parse, ask the engine, render."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import assert_never

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from turnout.core.ids import RequestId, new_request_id
from turnout.core.receipts import encode_receipt
from turnout.errors import GatewayError, TurnoutError
from turnout.gateway.access import Authenticate
from turnout.gateway.delivery import (
    ClientGoneError,
    EventStream,
    error_response,
    while_connected,
)
from turnout.gateway.engine import Engine, StreamPart
from turnout.gateway.exchange import InferenceRequest, StreamDelta, StreamEnd, UpstreamError
from turnout.gateway.wire.chat_request import parse_chat_request
from turnout.gateway.wire.chat_response import write_completion
from turnout.gateway.wire.chat_stream import delta_event, end_events

__all__ = ["AppLimits", "build_app"]

_OWNER = "turnout"
_LONGEST_NUMBER = 9

Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class AppLimits:
    """What the HTTP surface puts up with."""

    body_bytes: int = 16 * 2**20
    body_seconds: float = 60.0
    """Time in which the body of a request must have come."""
    keep_alive: float = 15.0
    """Seconds of silence on a stream after which a comment is sent."""


def build_app(
    engine: Engine, authenticate: Authenticate, limits: AppLimits | None = None
) -> Starlette:
    """Return the gateway's application: everything below `/v1` and `/api/v1/inference`."""
    api = _Api(engine, authenticate, limits or AppLimits())
    models = [
        Route("/chat/completions", api.chat_completions, methods=["POST"]),
        Route("/models", api.models, methods=["GET"]),
        Route("/models/{model:path}", api.model, methods=["GET"]),
        Route("/requests/{request_id}", api.receipt, methods=["GET"]),
    ]
    return Starlette(
        routes=[
            Route("/", _hello, methods=["GET"]),
            Route("/healthz", _hello, methods=["GET"]),
            Mount("/v1", routes=models),
            Mount("/api/v1/inference/v1", routes=models),
            Mount("/api/v1/inference", routes=models),
        ],
        exception_handlers={HTTPException: _no_such_route, Exception: _broken},
    )


class _Api:
    """The routes that take a key; each method is one of them."""

    def __init__(self, engine: Engine, authenticate: Authenticate, limits: AppLimits) -> None:
        self._engine = engine
        self._authenticate = authenticate
        self._limits = limits

    async def chat_completions(self, request: Request) -> Response:
        """Serve a chat completion, streamed or whole."""
        request_id = new_request_id()
        headers: dict[str, str] = {"x-request-id": request_id}
        try:
            caller = self._authenticate(request.headers)
            raw = await _read_body(request, self._limits)
            asked = parse_chat_request(raw, request.headers)
            if asked.stream:
                parts = self._engine.stream(caller, asked, request_id)
                events = _events(parts, asked, request_id)
                return EventStream(events, headers=headers, keep_alive=self._limits.keep_alive)
            work = self._engine.complete(caller, asked, request_id)
            completion = await while_connected(request.receive, work)
        except (TurnoutError, UpstreamError) as error:
            return error_response(error, headers)
        except (ClientGoneError, ClientDisconnect):
            return Response(status_code=499)
        return _json(write_completion(completion, request_id), headers)

    async def models(self, request: Request) -> Response:
        """List the models that a request may name."""
        try:
            self._authenticate(request.headers)
            limit = _limit(request)
        except TurnoutError as error:
            return error_response(error, {})
        data = [_model_entry(name) for name in self._engine.model_names()[:limit]]
        return _json(orjson.dumps({"object": "list", "data": data, "has_more": False}))

    async def model(self, request: Request) -> Response:
        """Show one model."""
        name = request.path_params["model"]
        try:
            self._authenticate(request.headers)
            if name not in self._engine.model_names():
                raise _missing(f"The model `{name}` does not exist here.", "model_not_found")
        except TurnoutError as error:
            return error_response(error, {})
        return _json(orjson.dumps(_model_entry(name)))

    async def receipt(self, request: Request) -> Response:
        """Read back what became of a request of the same key."""
        request_id = RequestId(request.path_params["request_id"])
        try:
            caller = self._authenticate(request.headers)
            found = await self._engine.receipt(caller, request_id)
            if found is None:
                raise _missing(f"There is no request `{request_id}`.", "request_not_found")
        except TurnoutError as error:
            return error_response(error, {})
        return _json(encode_receipt(found).encode())


async def _events(
    parts: AsyncGenerator[StreamPart, None], asked: InferenceRequest, request_id: RequestId
) -> AsyncGenerator[bytes, None]:
    async with aclosing(parts):
        async for part in parts:
            match part:
                case StreamDelta():
                    yield delta_event(part, request_id)
                case StreamEnd():
                    yield end_events(part, request_id, include_usage=asked.include_usage)
                case _:
                    assert_never(part)


async def _read_body(request: Request, limits: AppLimits) -> bytes:
    too_large = GatewayError(
        f"The body is larger than {limits.body_bytes} bytes.",
        status=413,
        code="request_too_large",
        mend="Shorten the conversation.",
    )
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limits.body_bytes:
        raise too_large
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for part in request.stream():
                parts.append(part)
                size += len(part)
                if size > limits.body_bytes:
                    raise too_large
    except TimeoutError as error:
        raise GatewayError(
            f"The body did not come within {limits.body_seconds:g} s.",
            status=408,
            code="request_timeout",
        ) from error
    return b"".join(parts)


def _limit(request: Request) -> int | None:
    asked = request.query_params.get("limit")
    if asked is None:
        return None
    if not (asked.isascii() and asked.isdecimal() and len(asked) <= _LONGEST_NUMBER):
        raise GatewayError(
            "`limit` must be a whole number.", status=400, code="invalid_request", param="limit"
        )
    return int(asked)


def _model_entry(name: str) -> dict[str, str | int]:
    return {"id": name, "object": "model", "created": 0, "owned_by": _OWNER}


def _missing(message: str, code: str) -> GatewayError:
    return GatewayError(message, status=404, code=code)


def _json(body: bytes, headers: dict[str, str] | None = None) -> Response:
    return Response(body, headers=headers, media_type="application/json")


async def _hello(_: Request) -> Response:
    return _json(b'{"status":"ok"}')


async def _no_such_route(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    code = "method_not_allowed" if status == 405 else "route_not_found"
    said = f"{request.method} {request.url.path} is not served here."
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    mend = "The model routes are /v1/chat/completions and /v1/models."
    return error_response(GatewayError(said, status=status, code=code, mend=mend), headers)


async def _broken(_: Request, __: Exception) -> Response:
    said = "The gateway failed; its log says why."
    return error_response(GatewayError(said, status=500, code="internal_error"), {})
