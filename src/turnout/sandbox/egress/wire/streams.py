"""Bytes in both directions, over TCP or over TLS, read and written without the two waiting."""

import asyncio
import contextlib
import socket
import ssl
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import TypeVar

__all__ = ["PIECE", "Stream", "TcpStream", "TlsStream", "join"]

PIECE = 1 << 16
"""Bytes of one read; a stream that is not read holds twice as many."""

_LINGER_SECONDS = 1.0
_LINGER_BYTES = 1 << 20

_Result = TypeVar("_Result")


class Stream(ABC):
    """A connection. Every method but `abort` may raise `OSError` where it broke."""

    def __init__(self) -> None:
        self._unread = b""

    async def read(self) -> bytes:
        """Return what there is, at least one byte; nothing at the end of the stream."""
        if self._unread:
            data, self._unread = self._unread, b""
            return data
        return await self._receive()

    def unread(self, data: bytes) -> None:
        """Put bytes back, to be read next."""
        self._unread = data + self._unread

    @abstractmethod
    async def _receive(self) -> bytes: ...

    @abstractmethod
    async def write(self, data: bytes) -> None:
        """Write all, no faster than the other side reads."""

    @abstractmethod
    async def end(self) -> None:
        """Say that nothing more will be written."""

    @abstractmethod
    def abort(self) -> None:
        """Break the connection at once, in both directions; what was written still arrives."""

    @abstractmethod
    async def closed(self) -> None:
        """Wait until nothing is left of a connection that was aborted."""


class TcpStream(Stream):
    """A TCP connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        super().__init__()
        self._reader = reader
        self._writer = writer
        self._check_open()
        # What `write` has written is with the kernel then: nothing is lost by `abort`.
        writer.transport.set_write_buffer_limits(high=0)

    @classmethod
    async def over(cls, sock: socket.socket) -> "TcpStream":
        """Return the stream of a connected socket, which is its own from now on."""
        with contextlib.ExitStack() as undo:
            undo.callback(sock.close)
            if sock.family in (socket.AF_INET, socket.AF_INET6):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            stream = cls(*await asyncio.open_connection(sock=sock, limit=PIECE))
            undo.pop_all()
        return stream

    async def _receive(self) -> bytes:
        return await self._reader.read(PIECE)

    async def write(self, data: bytes) -> None:
        """Write all, no faster than the other side reads."""
        self._check_open()
        self._writer.write(data)
        await self._writer.drain()

    async def end(self) -> None:
        """Say that nothing more will be written."""
        self._check_open()
        self._writer.write_eof()

    def _check_open(self) -> None:
        # uvloop's transports raise a RuntimeError for what is done to one that is closed.
        if self._writer.is_closing():
            raise ConnectionResetError("it is closed")

    def abort(self) -> None:
        """Break the connection at once."""
        self._writer.transport.abort()

    async def closed(self) -> None:
        """Wait until nothing is left of it."""
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def linger(self) -> None:
        """Write nothing more, but read on for a moment.

        A connection that is closed while it holds unread bytes takes the last answer with it.
        """
        with contextlib.suppress(OSError):
            async with asyncio.timeout(_LINGER_SECONDS):
                await self.end()
                taken = 0
                while taken < _LINGER_BYTES and (data := await self.read()):
                    taken += len(data)


class TlsStream(Stream):
    """TLS over another stream, as server or as client."""

    def __init__(
        self, under: Stream, context: ssl.SSLContext, *, server_hostname: str | None = None
    ) -> None:
        super().__init__()
        self._under = under
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming,
            self._outgoing,
            server_side=server_hostname is None,
            server_hostname=server_hostname,
        )

    async def handshake(self) -> None:
        """Agree on keys and check certificates; `ssl.SSLError` where that fails."""
        await self._with_input(self._tls.do_handshake)

    async def _receive(self) -> bytes:
        try:
            return await self._with_input(self._read)
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""

    def _read(self) -> bytes:
        return self._tls.read(PIECE)

    async def _with_input(self, action: Callable[[], _Result]) -> _Result:
        """Return what `action` does once enough was read from below."""
        while True:
            try:
                result = action()
            except ssl.SSLWantReadError:
                await self._flush()
            except ssl.SSLError:
                # What was refused is told to the other side by an alert, if it still listens.
                with contextlib.suppress(OSError):
                    await self._flush()
                raise
            else:
                await self._flush()
                return result
            if data := await self._under.read():
                self._incoming.write(data)
            else:
                self._incoming.write_eof()

    async def _flush(self) -> None:
        if self._outgoing.pending:
            await self._under.write(self._outgoing.read())

    async def write(self, data: bytes) -> None:
        """Write all, no faster than the other side reads."""
        rest = memoryview(data)
        while rest:
            rest = rest[self._tls.write(rest) :]
            await self._flush()

    async def end(self) -> None:
        """Say that nothing more will be written."""
        with contextlib.suppress(ssl.SSLError):
            self._tls.unwrap()
        await self._flush()
        await self._under.end()

    def abort(self) -> None:
        """Break the connection at once."""
        self._under.abort()

    async def closed(self) -> None:
        """Wait until nothing is left of it."""
        await self._under.closed()


async def join(client: Stream, host: Stream) -> None:
    """Copy in both directions until both have ended; `ConnectionError` where the host broke.

    A client that breaks the connection is done with it: most do, once they have what they asked.
    """
    broken: list[Stream] = []
    try:
        async with asyncio.TaskGroup() as copies:
            copies.create_task(_copy(client, host, broken))
            copies.create_task(_copy(host, client, broken))
    except* OSError:
        pass
    if broken and broken[0] is host:
        raise ConnectionAbortedError("it broke off")


async def _copy(source: Stream, sink: Stream, broken: list[Stream]) -> None:
    """Copy to the end; which of the two broke is noted."""
    while data := await _noting(source, source.read(), broken):
        await _noting(sink, sink.write(data), broken)
    await _noting(sink, sink.end(), broken)


async def _noting(stream: Stream, work: Awaitable[_Result], broken: list[Stream]) -> _Result:
    try:
        return await work
    except OSError:
        broken.append(stream)
        raise
