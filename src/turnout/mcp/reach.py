"""How servers are reached: from here, or by their program inside of walls."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import anyio

from turnout.core.govern.connections import Connection
from turnout.errors import ConnectionFailedError
from turnout.mcp.http import over_http
from turnout.mcp.lines import LONGEST_LINE, OnEnd, over_lines
from turnout.mcp.program import over_pipes

__all__ = ["Cage", "Reach", "from_here", "inside"]

Transport = Callable[[Connection, OnEnd], AbstractAsyncContextManager[Any]]
"""Opens the way to a server."""


class Cage(Protocol):
    """Walls in which programs run."""

    def speak(
        self, connection: Connection, heard: AsyncIterator[bytes]
    ) -> AsyncGenerator[bytes, None]:
        """Run a connection's program on what it is to hear, yielding what it says, in any pieces.

        `ConnectionFailedError` says how it ended, as the end of a sentence about it. The program is
        ended with the generator.
        """
        ...


@dataclass(frozen=True, slots=True)
class Reach:
    """How servers are reached, and what people call them."""

    transport: Transport
    called: str
    alone: bool
    """Whether nobody else uses a server, so that one which hangs can be started anew."""


def from_here() -> Reach:
    """Return the way to addresses, and to programs that run as we do."""
    return Reach(_from_here, "connection", alone=False)


def inside(cage: Cage) -> Reach:
    """Return the way to programs that run in a cage."""
    return Reach(partial(_over_cage, cage), "MCP server", alone=True)


def _from_here(connection: Connection, on_end: OnEnd) -> AbstractAsyncContextManager[Any]:
    return over_http(connection) if connection.url else over_pipes(connection, on_end)


@asynccontextmanager
async def _over_cage(cage: Cage, connection: Connection, on_end: OnEnd) -> AsyncIterator[Any]:
    says, heard = anyio.create_memory_object_stream[bytes](0)
    lines = _lines(cage.speak(connection, heard))
    async with says, heard, over_lines(lines, says.send, on_end) as streams:
        yield streams


async def _lines(pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Yield whole lines; after one that is too long there is no way back into the stream."""
    parts: list[bytes] = []
    size = 0
    async with aclosing(pieces):
        async for piece in pieces:
            first, *others = piece.split(b"\n")
            parts.append(first)
            size += len(first)
            for other in others:
                yield b"".join(parts)
                parts, size = [other], len(other)
            if size > LONGEST_LINE:
                most = LONGEST_LINE // 2**20
                raise ConnectionFailedError(f"said more than {most} MiB in one message")
