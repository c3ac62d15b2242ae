"""Callers that do as little of their own as can be, so that they measure others."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Self

from peers import Target
from servers import PATH

__all__ = ["Caller", "Listener"]


class Caller:
    """One connection on which requests are made."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: Target
    ) -> None:
        self._reader = reader
        self._writer = writer
        body = json.dumps(target.body).encode()
        headers = {
            "host": f"127.0.0.1:{target.port}",
            "content-type": "application/json",
            "content-length": str(len(body)),
            **target.headers,
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._request = f"POST {PATH} HTTP/1.1\r\n{lines}\r\n".encode() + body

    @classmethod
    @asynccontextmanager
    async def connected(cls, target: Target) -> AsyncIterator[Self]:
        """Connect to a target for one batch: idle connections are closed by some."""
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
        try:
            yield cls(reader, writer, target)
        finally:
            writer.close()
            await writer.wait_closed()

    async def call(self) -> float:
        """Make one request and return its milliseconds."""
        began = time.perf_counter()
        head = (await self._begin()).lower()
        _, declared, rest = head.partition(b"content-length:")
        if declared:
            await self._reader.readexactly(int(rest.partition(b"\r\n")[0]))
        else:
            await self._reader.readuntil(b"\r\n0\r\n\r\n")
        return (time.perf_counter() - began) * 1000

    async def _begin(self) -> bytes:
        """Send the request and return the head of the answer."""
        self._writer.write(self._request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        assert head.lower().startswith(b"http/1.1 200"), head
        return head


class Listener(Caller):
    """A caller that notes when each event of a stream comes."""

    async def listen(self) -> Sequence[float]:
        """Take one stream to its end; return the milliseconds between its events."""
        await self._begin()
        moments = []
        while True:
            event = await self._reader.readuntil(b"\n\n")
            if event.endswith(b"data: [DONE]\n\n"):
                break
            if b"word" in event:
                moments.append(time.perf_counter())
        return [(later - earlier) * 1000 for earlier, later in pairwise(moments)]
