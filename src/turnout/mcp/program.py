"""A server that the gateway starts itself and speaks to over its standard input and output."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process, SubprocessStreamProtocol
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Final

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter
from pydantic import ValidationError

from turnout.core.govern.connections import Connection
from turnout.errors import ConnectionFailedError

__all__ = ["over_pipes"]

_LONGEST_LINE: Final = 8 * 2**20
_GRACE: Final = 1.0
"""Seconds that a program has to end by itself, and then again once it is told to."""


def over_pipes(
    connection: Connection, on_end: Callable[[], None]
) -> AbstractAsyncContextManager[Any]:
    """Return the transport to the program of a connection, which ends with it.

    `on_end` is told once the program says nothing any more. The SDK's own transport reads lines
    of any length and hands the program variables of ours.
    """
    return _open(connection, on_end)


@asynccontextmanager
async def _open(connection: Connection, on_end: Callable[[], None]) -> AsyncIterator[Any]:
    loop = asyncio.get_running_loop()
    try:
        transport, protocol = await loop.subprocess_exec(
            lambda: _Protocol(_LONGEST_LINE, loop),
            *connection.command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env=dict(connection.environment),
            start_new_session=True,
        )
    except OSError as error:
        raise ConnectionFailedError(
            f"{connection.command[0]} cannot be started: {error.strerror}.",
            mend=f"Check `connections.{connection.name}.command`.",
        ) from error
    process = Process(transport, protocol, loop)
    heard, hears = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    said, says = anyio.create_memory_object_stream[SessionMessage](0)
    listening = asyncio.create_task(_listen(process, heard))
    listening.add_done_callback(lambda _: on_end())
    speaking = asyncio.create_task(_speak(process, says))
    try:
        yield hears, said
    finally:
        for task in (listening, speaking):
            task.cancel()
        await asyncio.wait({listening, speaking})
        for stream in (heard, hears, said, says):
            stream.close()
        await _end(process, protocol.exited)
        # A descendant may still hold the pipes.
        transport.close()


class _Protocol(SubprocessStreamProtocol):
    """Says when the program is gone: `wait` waits for its pipes too, which may be full."""

    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit, loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        self.exited.set()
        super().process_exited()


async def _listen(
    process: Process, heard: anyio.abc.ObjectSendStream[SessionMessage | Exception]
) -> None:
    """Hand on what the program says; the session hears of the end as the end of the stream."""
    if process.stdout is None:
        return
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async with heard:
            # A line that is too long is a ValueError: there is no way back into the stream.
            with suppress(ValueError, ConnectionError):
                while line := await process.stdout.readline():
                    await heard.send(_message(line))


async def _speak(process: Process, says: anyio.abc.ObjectReceiveStream[SessionMessage]) -> None:
    if process.stdin is None:
        return
    with suppress(ConnectionError, anyio.ClosedResourceError):
        async with says:
            async for message in says:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(text.encode() + b"\n")
                await process.stdin.drain()


def _message(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValidationError as error:
        return error


async def _end(process: Process, exited: asyncio.Event) -> None:
    """End the program and what it has started."""
    if process.stdin is not None:
        process.stdin.close()
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE):
                await exited.wait()
                break
        _signal(process, number)
    # The group is still there where a child of the program has outlived it.
    _signal(process, signal.SIGKILL)


def _signal(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
