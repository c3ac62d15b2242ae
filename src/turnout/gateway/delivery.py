"""Delivery of answers over ASGI: events as they come, and no work for a client that is gone."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from turnout.errors import TurnoutError
from turnout.gateway.exchange import UpstreamError
from turnout.gateway.wire.chat_stream import KEEP_ALIVE, error_event
from turnout.gateway.wire.errors import write_error

__all__ = ["ClientGoneError", "EventStream", "error_response", "while_connected"]

_LONGEST_SEND = 120.0
"""Seconds that a client may leave an event unread before it counts as gone."""

Answer = TypeVar("Answer")


class ClientGoneError(Exception):
    """The client closed its connection; there is nobody left to answer."""


async def while_connected(receive: Receive, work: Coroutine[Any, Any, Answer]) -> Answer:
    """Return what `work` returns; cancel it where the client goes away first."""
    working = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(_disconnection(receive))
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGoneError
        return working.result()
    finally:
        await _end(working)
        await _end(watching)


def error_response(error: TurnoutError | UpstreamError, headers: dict[str, str]) -> Response:
    """Return the answer to a request that failed before anything was sent."""
    reply = write_error(error)
    return Response(
        reply.body,
        reply.status,
        headers={**headers, **reply.headers},
        media_type="application/json",
    )


class EventStream(Response):
    """Server-sent events, with a comment whenever nothing moved for `keep_alive` seconds.

    An error before the first event becomes an ordinary error response, a later one an event.
    Where the client goes away the events are closed at once.
    """

    def __init__(
        self,
        events: AsyncGenerator[bytes, None],
        *,
        headers: dict[str, str],
        keep_alive: float,
    ) -> None:
        super().__init__(
            status_code=200,
            headers={**headers, "cache-control": "no-store", "x-accel-buffering": "no"},
            media_type="text/event-stream",
        )
        del self.headers["content-length"]
        self._events = events
        self._own_headers = headers
        self._keep_alive = keep_alive
        self._started = False
        self._moved = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send every event, or stop where the client is gone."""
        with suppress(ClientGoneError):
            await while_connected(receive, self._run(scope, receive, send))

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        ticking = asyncio.ensure_future(self._tick(send))
        try:
            async for event in self._events:
                await self._send(send, event)
        except (TurnoutError, UpstreamError) as error:
            if not self._started:
                await error_response(error, self._own_headers)(scope, receive, send)
                return
            await self._send(send, error_event(error))
        finally:
            await _end(ticking)
            await self._events.aclose()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _tick(self, send: Send) -> None:
        while True:
            self._moved = False
            await asyncio.sleep(self._keep_alive)
            if not self._moved:
                await self._send(send, KEEP_ALIVE)

    async def _send(self, send: Send, event: bytes) -> None:
        self._moved = True
        try:
            async with asyncio.timeout(_LONGEST_SEND):
                if not self._started:
                    self._started = True
                    await send(
                        {
                            "type": "http.response.start",
                            "status": self.status_code,
                            "headers": self.raw_headers,
                        }
                    )
                await send({"type": "http.response.body", "body": event, "more_body": True})
        except TimeoutError as error:
            raise ClientGoneError from error


async def _disconnection(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _end(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()
