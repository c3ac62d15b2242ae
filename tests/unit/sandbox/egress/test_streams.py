"""Streams lose nothing, and end when the other side does."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator

import pytest
import uvloop
from tests.egress import Certifier, trusting

from turnout.sandbox.egress.wire.streams import Stream, TcpStream, TlsStream, join

WORLD = Certifier()


@pytest.fixture
async def pair() -> AsyncIterator[tuple[TcpStream, TcpStream]]:
    """Return two ends of a connection whose kernel buffers are small."""
    ends = socket.socketpair()
    for end in ends:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
        end.setblocking(False)
    one, other = [await TcpStream.over(end) for end in ends]
    yield one, other
    for stream in (one, other):
        stream.abort()
        await stream.closed()


async def whole(stream: Stream) -> bytes:
    """Return all that comes until the end."""
    pieces = []
    async with asyncio.timeout(20):
        while piece := await stream.read():
            pieces.append(piece)
    return b"".join(pieces)


async def secured(one: Stream, other: Stream) -> tuple[TlsStream, TlsStream]:
    """Return client and server of TLS over a connection."""
    client = TlsStream(one, trusting(WORLD.pem), server_hostname="a.test")
    server = TlsStream(other, WORLD.server("a.test"))
    async with asyncio.timeout(20):
        await asyncio.gather(client.handshake(), server.handshake())
    return client, server


async def test_what_was_written_arrives_though_the_stream_is_broken(
    pair: tuple[TcpStream, TcpStream],
) -> None:
    """However slowly the other side reads."""
    one, other = pair

    async def write() -> None:
        await one.write(bytes(1 << 18))
        one.abort()

    writing = asyncio.create_task(write())
    await asyncio.sleep(0.05)
    assert not writing.done()
    assert await whole(other) == bytes(1 << 18)
    await writing


async def test_what_is_put_back_is_read_next(pair: tuple[TcpStream, TcpStream]) -> None:
    """The last first, and before anything new."""
    one, other = pair
    await other.write(b"d")
    await other.end()
    one.unread(b"c")
    one.unread(b"ab")
    assert await whole(one) == b"abcd"


async def test_tls_carries_both_directions_at_once(pair: tuple[TcpStream, TcpStream]) -> None:
    """More than the buffers hold, and to an orderly end."""
    client, server = await secured(*pair)
    sent = bytes(range(256)) * 1_024

    async def send(stream: Stream) -> None:
        await stream.write(sent)
        await stream.end()

    found = await asyncio.gather(whole(client), whole(server), send(client), send(server))
    assert found[:2] == [sent, sent]


async def test_a_cut_tls_connection_has_ended(pair: tuple[TcpStream, TcpStream]) -> None:
    """Many servers say no goodbye; what is missing is seen by the framing of HTTP."""
    client, server = await secured(*pair)
    await server.write(b"abc")
    pair[1].abort()
    assert await whole(client) == b"abc"


async def test_a_handshake_that_fails_is_told_to_the_other_side(
    pair: tuple[TcpStream, TcpStream],
) -> None:
    """By an alert, so that it can say why."""
    client = TlsStream(pair[0], trusting(Certifier().pem), server_hostname="a.test")
    server = TlsStream(pair[1], WORLD.server("a.test"))
    found = await asyncio.gather(client.handshake(), server.handshake(), return_exceptions=True)
    assert isinstance(found[0], ssl.SSLCertVerificationError)
    assert isinstance(found[1], ssl.SSLError)
    assert "ALERT" in str(found[1])


@pytest.mark.parametrize("sent", [b"", b"\x15\x03\x03\x00\x02\x02\x28", b"GET / HTTP/1.1\r\n\r\n"])
async def test_a_handshake_with_something_else_fails(
    pair: tuple[TcpStream, TcpStream], sent: bytes
) -> None:
    """It does not wait for more."""
    client = TlsStream(pair[0], trusting(WORLD.pem), server_hostname="a.test")
    await pair[1].write(sent)
    await pair[1].end()
    async with asyncio.timeout(20):
        with pytest.raises(ssl.SSLError):
            await client.handshake()


class Broken(TcpStream):
    """A stream that cannot be read any more."""

    async def _receive(self) -> bytes:
        raise ConnectionResetError("reset by 10.0.0.1")


async def test_joined_streams_break_together(pair: tuple[TcpStream, TcpStream]) -> None:
    """The other direction does not go on, and the error does not say where it led."""
    one, other = pair
    broken = Broken(one._reader, one._writer)
    async with asyncio.timeout(20):
        with pytest.raises(ConnectionAbortedError, match=r"^it broke off$"):
            await join(other, broken)


async def test_a_client_may_leave_without_a_word(pair: tuple[TcpStream, TcpStream]) -> None:
    """That ends both directions and is no failure of the host's."""
    one, other = pair
    async with asyncio.timeout(20):
        await join(Broken(one._reader, one._writer), other)


def test_a_connection_that_is_closed_breaks_off_on_the_loop_of_the_service() -> None:
    """Its transports raise no `OSError` of themselves once the other side has reset them."""

    async def use_closed() -> None:
        ends = socket.socketpair()
        for end in ends:
            end.setblocking(False)
        one, other = [await TcpStream.over(end) for end in ends]
        for stream in (one, other):
            stream.abort()
            await stream.closed()
        for use in (lambda: one.write(b"late"), one.end):
            with pytest.raises(ConnectionResetError):
                await use()
        async with asyncio.timeout(20):
            await one.linger()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(use_closed())
