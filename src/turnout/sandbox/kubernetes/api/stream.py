"""Carrying the channel of an agent over the websocket of an executed program.

Each binary message is the number of a stream and a piece of it: 0 standard input, 1 standard
output, 2 standard error, 3 the end of the program.
"""

import asyncio
import socket
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Protocol

from aiohttp import ClientError, WSMessage, WSMsgType

__all__ = ["Stream", "carry", "send_input"]

_PIECE = 1 << 16
_STDIN, _STDOUT, _STDERR = b"\0", 1, 2
_MOST_COMPLAINT = 2_000
_ALIVE_SECONDS = 60.0
_CLOSE_SECONDS = 2.0


class Stream(Protocol):
    """What is needed of a websocket."""

    async def send_bytes(self, data: bytes) -> None:
        """Send a message, waiting for room."""
        ...

    async def receive(self) -> WSMessage:
        """Wait for a message; one of a closing kind at the end."""
        ...

    async def close(self) -> bool:
        """Close it."""
        ...


async def send_input(stream: Stream, data: bytes) -> None:
    """Send standard input, in pieces that every server takes."""
    for start in range(0, len(data), _PIECE):
        await stream.send_bytes(_STDIN + data[start : start + _PIECE])


async def carry(stream: Stream, sock: socket.socket) -> str:
    """Copy between a websocket and a non-blocking socket until either ends.

    Neither side is read faster than the other takes it. The websocket is closed then, the socket is
    the caller's. Returns what the program complained of.
    """
    complaint = bytearray()
    copies = {
        _start(_outward(stream, sock)),
        _start(_inward(stream, sock, complaint)),
        _start(_stay_alive(stream)),
    }
    try:
        await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for copy in copies:
            copy.cancel()
        await asyncio.wait(copies)
        with suppress(TimeoutError, ClientError, OSError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await stream.close()
    return complaint.decode(errors="backslashreplace").strip()


def _start(copy: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    return asyncio.create_task(_until_broken(copy))


async def _until_broken(copy: Coroutine[Any, Any, None]) -> None:
    """Take the break of a connection for its end."""
    try:
        await copy
    except (ClientError, OSError):
        return


async def _outward(stream: Stream, sock: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    while data := await loop.sock_recv(sock, _PIECE):
        await stream.send_bytes(_STDIN + data)


async def _inward(stream: Stream, sock: socket.socket, complaint: bytearray) -> None:
    loop = asyncio.get_running_loop()
    while True:
        message = await stream.receive()
        if message.type in (WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED, WSMsgType.ERROR):
            return
        if message.type is not WSMsgType.BINARY or not message.data:
            continue
        channel, data = message.data[0], message.data[1:]
        if channel == _STDOUT:
            await loop.sock_sendall(sock, data)
        elif channel == _STDERR:
            complaint += data[: _MOST_COMPLAINT - len(complaint)]


async def _stay_alive(stream: Stream) -> None:
    """Send nothing, now and then: a connection that carries nothing for hours is closed.

    The pings of the protocol do not count as traffic everywhere on the way.
    """
    while True:
        await asyncio.sleep(_ALIVE_SECONDS)
        await stream.send_bytes(_STDIN)
