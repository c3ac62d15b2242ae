"""The first message of a TLS client: the name of the host that it wants (RFC 8446, RFC 6066)."""

from turnout.sandbox.egress.wire.streams import Stream

__all__ = ["UNRECOGNIZED_NAME", "HelloError", "hello_name", "read_hello"]

UNRECOGNIZED_NAME = bytes((21, 3, 3, 0, 2, 2, 112))
"""The record of the alert that refuses a name."""

_HANDSHAKE_RECORD = 22
_CLIENT_HELLO = 1
_SERVER_NAME = 0
_HOST_NAME = 0
_RECORD_HEAD = 5
_MESSAGE_HEAD = 4
_LONGEST_RECORD = 1 << 14
_MOST_RECORDS = 16
_LONGEST_HELLO = 1 << 14
"""Bytes of the message; one with post-quantum keys takes about 2,000."""


class HelloError(Exception):
    """A client did not begin with TLS and the name of a host; the text says what was wrong."""


async def read_hello(stream: Stream) -> str:
    """Return the name that a client asks for; its bytes stay to be read from the stream."""
    data = b""
    try:
        while (name := hello_name(data)) is None:
            if not (more := await stream.read()):
                raise HelloError("it ended before its TLS greeting did")
            data += more
    finally:
        stream.unread(data)
    return name


def hello_name(data: bytes) -> str | None:
    """Return the host name in what a client sent first, as it was spelled; None where cut short.

    With an encrypted client hello, it is the outer name. `HelloError` where these bytes are not,
    or cannot become, a ClientHello with exactly one name.
    """
    message = _message(data)
    if message is None:
        return None
    body = _Fields(message)
    body.take(2 + 32)
    body.block(1)
    body.block(2)
    body.block(1)
    extensions = _Fields(body.block(2))
    body.finish()
    found: dict[int, bytes] = {}
    while extensions.left:
        kind = extensions.number(2)
        if kind in found:
            raise HelloError("its TLS greeting has an extension twice")
        found[kind] = extensions.block(2)
    if _SERVER_NAME not in found:
        raise HelloError("its TLS greeting names no host")
    return _only_name(found[_SERVER_NAME])


def _only_name(extension: bytes) -> str:
    outer = _Fields(extension)
    names = _Fields(outer.block(2))
    outer.finish()
    kind, name = names.number(1), names.block(2)
    if kind != _HOST_NAME or names.left or not name.isascii():
        raise HelloError("its TLS greeting does not name one host")
    return name.decode("ascii")


def _message(data: bytes) -> bytes | None:
    """Return the body of the first handshake message, joined from its records."""
    records = _Fields(data)
    joined = bytearray()
    for _ in range(_MOST_RECORDS):
        if not records.left:
            return None
        if records.peek() != _HANDSHAKE_RECORD:
            raise HelloError("it does not speak TLS")
        if records.left < _RECORD_HEAD:
            return None
        _, major, minor, length = (records.number(size) for size in (1, 1, 1, 2))
        if major != 3 or minor > 4 or not 0 < length <= _LONGEST_RECORD:
            raise HelloError("it does not speak TLS")
        joined += records.take(min(length, records.left))
        if joined and joined[0] != _CLIENT_HELLO:
            raise HelloError("it does not begin with a TLS greeting")
        if len(joined) >= _MESSAGE_HEAD:
            size = int.from_bytes(joined[1:_MESSAGE_HEAD], "big")
            if size > _LONGEST_HELLO:
                raise HelloError("its TLS greeting is too long")
            if len(joined) >= _MESSAGE_HEAD + size:
                return bytes(joined[_MESSAGE_HEAD : _MESSAGE_HEAD + size])
    raise HelloError("its TLS greeting is in too many pieces")


class _Fields:
    """Reads the length-prefixed fields of a message; `HelloError` where one is cut short."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def peek(self) -> int:
        return self._data[self._at]

    def take(self, count: int) -> bytes:
        if count > self.left:
            raise HelloError("its TLS greeting is malformed")
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def block(self, size: int) -> bytes:
        return self.take(self.number(size))

    def finish(self) -> None:
        if self.left:
            raise HelloError("its TLS greeting is malformed")
