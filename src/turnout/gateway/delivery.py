"""Answers over ASGI: bodies in, events out, and no work for a client that is gone."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Protocol, Self

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from turnout.errors import GatewayError, TurnoutError
from turnout.gateway.exchange import UpstreamError
from turnout.gateway.wire.base import ErrorReply

__all__ = [
    "AppLimits",
    "ClientGoneError",
    "Connected",
    "ErrorWriter",
    "error_response",
    "header_map",
    "read_body",
    "send_answer",
    "send_events",
]

KEEP_ALIVE: Final = b": keep-alive\n\n"
"""A comment that clients skip, for connections that close when nothing moves."""

_LONGEST_SEND: Final = 120.0
"""Seconds that a client may leave an event unread before it counts as gone."""

_UNWATCHED: Final = 0.02
"""Seconds that a request runs before somebody watches for its client to go away."""

_JSON: Final = (b"content-type", b"application/json")


class ClientGoneError(Exception):
    """The client closed its connection; there is nobody left to answer."""


@dataclass(frozen=True, slots=True)
class AppLimits:
    """What the HTTP surface puts up with."""

    body_bytes: int = 16 * 2**20
    body_seconds: float = 60.0
    """Time in which the body of a request must have come."""
    keep_alive: float = 15.0
    """Seconds of silence on a stream after which a comment is sent."""


class ErrorWriter(Protocol):
    """Says on a stream what went wrong."""

    def error(self, error: TurnoutError | UpstreamError) -> bytes:
        """Return the event of an error after the stream began; nothing follows it."""
        ...


class Connected:
    """A block of work for one client; ends with `ClientGoneError` where the client goes away.

    Most requests are over before anybody need watch, so watching begins a moment late.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._gone = False
        self._watching: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("runs inside a task")
        self._task = task
        self._loop = task.get_loop()
        self._timer = self._loop.call_later(_UNWATCHED, self._watch)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        if self._watching is not None:
            self._watching.cancel()
        if self._gone and kind is asyncio.CancelledError and self._task.uncancel() == 0:
            raise ClientGoneError from None

    def _watch(self) -> None:
        self._watching = self._loop.create_task(self._listen())

    async def _listen(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        self._task.cancel()


def header_map(scope: Scope) -> dict[str, str]:
    """Return the headers of a request under lower-case names; of repeated ones the last."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


async def read_body(receive: Receive, headers: Mapping[str, str], limits: AppLimits) -> bytes:
    """Return the body of a request.

    `GatewayError`: 413 where it is too large, 408 where it does not come in time.
    """
    declared = headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limits.body_bytes:
        raise _too_large(limits)
    message = await _next(receive, limits)
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        if len(body) > limits.body_bytes:
            raise _too_large(limits)
        return body
    parts, size = [body], len(body)
    deadline = asyncio.get_running_loop().time() + limits.body_seconds
    while message.get("more_body", False):
        message = await _next(receive, limits, deadline)
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limits.body_bytes:
            raise _too_large(limits)
    return b"".join(parts)


async def send_answer(
    send: Send, status: int, body: bytes, headers: Mapping[str, str] | None = None
) -> None:
    """Send a JSON answer whole."""
    raw = [_JSON, (b"content-length", str(len(body)).encode())]
    raw += [(n.encode("latin-1"), v.encode("latin-1")) for n, v in (headers or {}).items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


def error_response(reply: ErrorReply, headers: Mapping[str, str] | None = None) -> Response:
    """Return the answer to a request that failed before anything was sent."""
    return Response(
        reply.body,
        reply.status,
        headers={**(headers or {}), **reply.headers},
        media_type="application/json",
    )


async def send_events(
    send: Send,
    events: AsyncGenerator[bytes, None],
    writer: ErrorWriter,
    headers: Mapping[str, str],
    keep_alive: float,
) -> None:
    """Send server-sent events as they come, and a comment whenever nothing moved for a while.

    An error before the first event is raised, a later one sent as an event. `ClientGoneError`
    where nobody reads.
    """
    stream = _Stream(send, headers)
    beating = asyncio.create_task(stream.beat(keep_alive))
    try:
        async for event in events:
            if event:
                await stream.send(event)
    except (TurnoutError, UpstreamError) as error:
        if not stream.started:
            raise
        await stream.send(writer.error(error))
    finally:
        beating.cancel()
        with suppress(RuntimeError):
            await events.aclose()
    await send({"type": "http.response.body", "body": b"", "more_body": False})


class _Stream:
    """One answer that is being sent."""

    def __init__(self, send: Send, headers: Mapping[str, str]) -> None:
        self.started = False
        self._send = send
        self._moved = False
        self._headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-store"),
            (b"x-accel-buffering", b"no"),
            *((n.encode("latin-1"), v.encode("latin-1")) for n, v in headers.items()),
        ]

    async def send(self, event: bytes) -> None:
        """Send bytes, the status and headers before the first; `ClientGoneError` if unread."""
        self._moved = True
        try:
            async with asyncio.timeout(_LONGEST_SEND):
                if not self.started:
                    self.started = True
                    start = {"type": "http.response.start", "status": 200}
                    await self._send({**start, "headers": self._headers})
                await self._send({"type": "http.response.body", "body": event, "more_body": True})
        except TimeoutError as error:
            raise ClientGoneError from error

    async def beat(self, seconds: float) -> None:
        """Send a comment whenever `seconds` pass without a word; until cancelled."""
        while True:
            self._moved = False
            await asyncio.sleep(seconds)
            if not self._moved:
                with suppress(ClientGoneError):
                    await self.send(KEEP_ALIVE)


async def _next(receive: Receive, limits: AppLimits, deadline: float | None = None) -> Message:
    until = deadline or asyncio.get_running_loop().time() + limits.body_seconds
    try:
        async with asyncio.timeout_at(until):
            message = await receive()
    except TimeoutError as error:
        raise GatewayError(
            f"The body did not come within {limits.body_seconds:g} s.",
            status=408,
            code="request_timeout",
        ) from error
    if message["type"] == "http.disconnect":
        raise ClientGoneError
    return message


def _too_large(limits: AppLimits) -> GatewayError:
    return GatewayError(
        f"The body is larger than {limits.body_bytes} bytes.",
        status=413,
        code="request_too_large",
        mend="Shorten the conversation.",
    )
