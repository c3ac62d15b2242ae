"""A server that the gateway starts itself and speaks to over its standard input and output."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process, SubprocessStreamProtocol
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from typing import Any, Final

from turnout.core.govern.connections import Connection
from turnout.errors import ConnectionFailedError
from turnout.mcp.lines import LONGEST_LINE, OnEnd, over_lines

__all__ = ["over_pipes"]

_GRACE: Final = 1.0
"""Seconds that a program has to end by itself, and then again once it is told to."""


def over_pipes(connection: Connection, on_end: OnEnd) -> AbstractAsyncContextManager[Any]:
    """Return the transport to the program of a connection, which ends with it.

    `on_end` is told once the program says nothing any more. The SDK's own transport reads lines
    of any length and hands the program variables of ours.
    """
    return _open(connection, on_end)


@asynccontextmanager
async def _open(connection: Connection, on_end: OnEnd) -> AsyncIterator[Any]:
    loop = asyncio.get_running_loop()
    try:
        transport, protocol = await loop.subprocess_exec(
            lambda: _Protocol(LONGEST_LINE, loop),
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
    try:
        tell = partial(_tell, process)
        async with over_lines(_lines(process), tell, on_end) as streams:
            yield streams
    finally:
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


async def _lines(process: Process) -> AsyncGenerator[bytes, None]:
    # A line that is too long is a ValueError: there is no way back into the stream.
    with suppress(ValueError, ConnectionError):
        while process.stdout is not None and (line := await process.stdout.readline()):
            yield line


async def _tell(process: Process, line: bytes) -> None:
    if process.stdin is not None:
        if process.stdin.is_closing():
            raise BrokenPipeError("the program takes nothing any more")
        process.stdin.write(line)
        await process.stdin.drain()


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
