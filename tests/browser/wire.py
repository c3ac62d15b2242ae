"""A way to the service that can be cut."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

__all__ = ["Wire", "wired"]


class Wire:
    """Carries bytes to a port of this machine and back."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._writers: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """Break every connection that is open; new ones are carried as before."""
        for writer in self._writers:
            writer.transport.abort()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection until either side ends it."""
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        both = {writer, back}
        self._writers |= both
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_pump(reader, back))
                group.create_task(_pump(there, writer))
        finally:
            self._writers -= both


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def wired(url: str) -> AsyncIterator[tuple[Wire, str]]:
    """Open a way to the host of a URL, and return it with the URL that goes over it."""
    place = urlsplit(url)
    assert place.port is not None
    wire = Wire(place.port)
    server = await asyncio.start_server(wire.carry, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield wire, place._replace(netloc=f"127.0.0.1:{port}").geturl()
    finally:
        server.close()
        wire.cut()
