"""HTTP/1.1 messages over streams: h11 reads and writes them, and this module is stricter."""

import re

import h11

from turnout.sandbox.egress.wire.refusal import RefusedError
from turnout.sandbox.egress.wire.streams import Stream

__all__ = ["Headers", "HttpPeer", "check_framing", "end_to_end", "read_head", "values"]

Headers = list[tuple[bytes, bytes]]
"""Names as they were spelled, and values."""

_HEAD_BYTES = 1 << 16
_HEAD_END = b"\r\n\r\n"
_STRAY = re.compile(rb"\0|\r(?!\n)|(?<!\r)\n|\r\n[ \t]")
"""What one program takes for the end of a line and another does not, and folded lines."""

_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_NEVER_NAMED = frozenset({b"content-length", b"host"})
"""End-to-end whatever a `Connection` field says: a body and its destination depend on them."""


class HttpPeer:
    """One side's messages on a stream; a new one for each request and its answer."""

    def __init__(self, stream: Stream, role: type[h11.CLIENT] | type[h11.SERVER]) -> None:
        self.stream = stream
        self.h11 = h11.Connection(role, max_incomplete_event_size=_HEAD_BYTES)

    async def receive(self) -> h11.Event:
        """Return the next part of a message; `h11.RemoteProtocolError` where it is malformed."""
        while True:
            event = self.h11.next_event()
            if isinstance(event, h11.Event):
                return event
            if event is h11.PAUSED:
                raise h11.RemoteProtocolError("more than one message")
            self.h11.receive_data(await self.stream.read())

    async def send(self, event: h11.Event) -> None:
        """Write a part of a message."""
        if data := self.h11.send(event):
            await self.stream.write(data)

    def finish(self) -> bool:
        """Give back what was read beyond the message; whether another one may follow it."""
        self.stream.unread(self.h11.trailing_data[0])
        return self.h11.our_state is h11.DONE and self.h11.their_state is h11.DONE


async def read_head(stream: Stream) -> bytes:
    """Return the head of a request; `RefusedError` where it is none, or could be read in two ways.

    What follows it stays to be read from the stream.
    """
    data = bytearray()
    end = -1
    while end < 0:
        if not (more := await stream.read()):
            raise RefusedError(400, "The request ended within its head.")
        searched = max(0, len(data) - len(_HEAD_END))
        data += more
        if not data[:1].isalpha():
            raise RefusedError(400, "This is an HTTP proxy: what was sent is no HTTP request.")
        end = data.find(_HEAD_END, searched)
        if (len(data) if end < 0 else end) > _HEAD_BYTES:
            raise RefusedError(431, f"The head of a request is at most {_HEAD_BYTES} bytes long.")
    end += len(_HEAD_END)
    stream.unread(bytes(data[end:]))
    head = bytes(data[:end])
    if _STRAY.search(head):
        raise RefusedError(400, "The head of the request holds a folded line or a stray line end.")
    return head


def check_framing(message: h11.Request | h11.Response) -> str:
    """Return why it is not certain where the body of a message ends; empty where it is."""
    coded = values(message, b"transfer-encoding")
    if coded and values(message, b"content-length"):
        return "it has both Transfer-Encoding and Content-Length"
    if coded and message.http_version < b"1.1":
        return "it has a Transfer-Encoding in HTTP/1.0"
    return ""


def values(message: h11.Request | h11.Response, name: bytes) -> list[bytes]:
    """Return the values of all fields of a lower-case name."""
    return [value for each, value in message.headers if each == name]


def end_to_end(message: h11.Request | h11.InformationalResponse | h11.Response) -> Headers:
    """Return the fields that are passed on."""
    named = {
        token.strip().lower()
        for name, value in message.headers
        if name == b"connection"
        for token in value.split(b",")
    }
    dropped = _HOP_BY_HOP | (named - _NEVER_NAMED)
    return [field for field in message.headers.raw_items() if field[0].lower() not in dropped]
