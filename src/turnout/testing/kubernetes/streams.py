"""The websocket of an executed program, as a kubelet serves it: v4 and v5.channel.k8s.io."""

import asyncio
import json
from asyncio.subprocess import Process
from dataclasses import dataclass

from aiohttp import ClientError, WSMsgType
from aiohttp.web import Request, WebSocketResponse

from turnout.testing.rooms.room import end_process

__all__ = ["Streams"]

_STDIN, _STDOUT, _STDERR, _ERROR, _CLOSE = 0, 1, 2, 3, 255
_PIECE = 32 << 10


class Streams:
    """The open streams of a cluster."""

    def __init__(self) -> None:
        self._open: set[asyncio.Transport] = set()

    def tear(self) -> None:
        """Break every stream off, without a word."""
        for transport in list(self._open):
            transport.abort()

    async def serve(
        self, request: Request, process: Process, cut_after_bytes: int | None
    ) -> WebSocketResponse:
        """Join a process to a websocket until one of them ends."""
        socket = WebSocketResponse(protocols=("v5.channel.k8s.io", "v4.channel.k8s.io"))
        await socket.prepare(request)
        transport = request.transport
        if transport is None:
            await end_process(process)
            return socket
        self._open.add(transport)
        left = _Left(transport, cut_after_bytes)
        out = [
            asyncio.create_task(_send(left, socket, process.stdout, _STDOUT)),
            asyncio.create_task(_send(left, socket, process.stderr, _STDERR)),
        ]
        ending = asyncio.create_task(self._report(socket, process, out))
        try:
            await self._receive(socket, process)
            if process.stdin is not None:
                process.stdin.close()
            await asyncio.wait([ending], timeout=2)
        finally:
            self._open.discard(transport)
            for task in (*out, ending):
                task.cancel()
            await asyncio.wait([*out, ending])
            await end_process(process)
        return socket

    async def _receive(self, socket: WebSocketResponse, process: Process) -> None:
        async for message in socket:
            data = message.data
            if message.type is not WSMsgType.BINARY or not data or process.stdin is None:
                continue
            if data[0] == _CLOSE and data[1:] == bytes([_STDIN]):
                process.stdin.close()
            elif data[0] == _STDIN:
                try:
                    process.stdin.write(data[1:])
                    await process.stdin.drain()
                except (BrokenPipeError, ConnectionResetError):
                    return

    async def _report(
        self, socket: WebSocketResponse, process: Process, out: list[asyncio.Task[None]]
    ) -> None:
        """Say how the program ended, once all that it printed was sent."""
        code = await process.wait()
        await asyncio.wait(out)
        status: dict[str, object] = {"metadata": {}, "status": "Success"}
        if code:
            cause = {"reason": "ExitCode", "message": str(code)}
            status |= {"status": "Failure", "reason": "NonZeroExitCode"}
            status |= {"details": {"causes": [cause]}}
        try:
            await socket.send_bytes(bytes([_ERROR]) + json.dumps(status).encode())
            await socket.close()
        except (ClientError, ConnectionError):
            return


@dataclass(slots=True)
class _Left:
    """How much may be sent before the stream is torn."""

    transport: asyncio.Transport
    most: int | None


async def _send(
    left: _Left, socket: WebSocketResponse, reader: asyncio.StreamReader | None, channel: int
) -> None:
    """Send what a program prints."""
    while reader is not None and (data := await reader.read(_PIECE)):
        torn = left.most is not None and left.most < len(data)
        try:
            await socket.send_bytes(bytes([channel]) + data[: left.most])
        except (ClientError, ConnectionError):
            return
        if torn:
            left.transport.abort()
            return
        left.most = None if left.most is None else left.most - len(data)
