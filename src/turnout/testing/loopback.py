"""What every scripted server has: a free loopback port, and ways to fail on it."""

import asyncio
import socket
import struct
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Protocol, Self

from aiohttp import web

__all__ = ["HTML_PAGE", "LoopbackServer", "ScriptedRefusal", "refuse", "reset"]

HTML_PAGE = b"<!doctype html><title>502</title><h1>Bad gateway</h1>"
"""What a proxy in front of a server says in its place."""


class ScriptedRefusal(Protocol):
    """An answer with an error status."""

    @property
    def status(self) -> int:
        """HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Beside the content type."""
        ...

    def payload(self) -> bytes:
        """Return the body, JSON in the error shape of the API."""
        ...


class LoopbackServer(ABC):
    """A server on a free loopback port, alive inside `async with`."""

    def __init__(self) -> None:
        self._stopping = asyncio.Event()
        """Set when the server ends: answers that stall wait for it."""
        self._runner: web.AppRunner | None = None
        self._port = 0

    @property
    def base_url(self) -> str:
        """Where providers send their requests, `/v1` included."""
        return f"http://127.0.0.1:{self._port}/v1"

    @abstractmethod
    def _routes(self) -> Sequence[web.RouteDef]:
        """Return what is served."""

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_routes(self._routes())
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        if self._runner is not None:
            await self._runner.cleanup()


def refuse(refusal: ScriptedRefusal) -> web.Response:
    """Return the response that a refusal is."""
    headers = {"Content-Type": "application/json", **refusal.headers}
    return web.Response(status=refusal.status, body=refusal.payload(), headers=headers)


def reset(request: web.Request) -> None:
    """Break the connection off as a crashed server does: by a reset, not an end."""
    transport = request.transport
    if transport is None:
        return
    held: socket.socket = transport.get_extra_info("socket")
    held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
