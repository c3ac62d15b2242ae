"""The requests of one client on one stream."""

import asyncio
from collections.abc import Awaitable, Callable

import h11

from turnout.sandbox.egress.wire.http import HttpPeer, check_framing, read_head, values
from turnout.sandbox.egress.wire.refusal import RefusedError, answer
from turnout.sandbox.egress.wire.streams import Stream

__all__ = ["Serve", "converse"]

Serve = Callable[[HttpPeer, h11.Request], Awaitable[bool]]
"""Serves a request whose head was read; whether another may follow it on the stream."""

_VERSIONS = (b"1.0", b"1.1")


async def converse(
    stream: Stream, serve: Serve, *, wait_seconds: float, head_seconds: float
) -> None:
    """Serve request after request until one was refused or the client leaves.

    `wait_seconds` may pass before each request begins, `head_seconds` more until its head is there.
    `OSError` where the stream broke or an answer could not be finished.
    """
    try:
        while True:
            if not await _begins(stream, wait_seconds):
                return
            head = await _head_within(head_seconds, stream)
            peer = HttpPeer(stream, h11.SERVER)
            if not await serve(peer, _parse(peer, head)):
                return
    except RefusedError as refused:
        await stream.write(answer(refused))


async def _begins(stream: Stream, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            begun = await stream.read()
    except TimeoutError:
        return False
    stream.unread(begun)
    return bool(begun)


async def _head_within(seconds: float, stream: Stream) -> bytes:
    try:
        async with asyncio.timeout(seconds):
            return await read_head(stream)
    except TimeoutError:
        raise RefusedError(408, "The head of the request did not arrive in time.") from None


def _parse(peer: HttpPeer, head: bytes) -> h11.Request:
    """Return the request; `RefusedError` where it is malformed, ambiguous or asks for too much."""
    try:
        peer.h11.receive_data(head)
        request = peer.h11.next_event()
    except h11.RemoteProtocolError as error:
        raise RefusedError(error.error_status_hint, "The request is malformed HTTP.") from None
    if not isinstance(request, h11.Request) or request.http_version not in _VERSIONS:
        raise RefusedError(505, "The proxy speaks HTTP/1.1.")
    if ambiguity := check_framing(request):
        raise RefusedError(400, f"The request is refused: {ambiguity}.")
    if request.method == b"TRACE":
        raise RefusedError(405, "TRACE is refused: an echo would show what the proxy puts in.")
    if {value.lower() for value in values(request, b"upgrade")} - {b"h2c"}:
        raise RefusedError(
            501, "An upgrade passes neither without TLS nor where a secret is put in."
        )
    return request
