"""The binary framing in which AWS streams: `application/vnd.amazon.eventstream`.

A message is its length, the length of its headers, a checksum of those two, headers, payload and
a checksum of all before it; numbers are big-endian. Each of Bedrock's carries one event of the
model's own API, as base64 in JSON.
"""

import binascii
import struct
from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import orjson

from turnout.core.json import JsonObject, as_text, read_json
from turnout.gateway.exchange import ServerEvent, UpstreamError

__all__ = ["CONTENT_TYPE", "EventStreamDecoder"]

CONTENT_TYPE: Final = "application/vnd.amazon.eventstream"

_PRELUDE: Final = struct.Struct(">III")
_CRC: Final = 4
_LARGEST: Final = 16 * 2**20
_TEXT: Final = 7
"""Type of a header whose value is text."""
_SIZES: Final[Mapping[int, int]] = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Bytes of the values of other types of headers; 6 and 7 say their own length."""
_METRICS: Final = "amazon-bedrock-invocationMetrics"
_STATUSES: Final[Mapping[str, int]] = {
    "accessDeniedException": 403,
    "internalServerException": 500,
    "modelErrorException": 424,
    "modelNotReadyException": 429,
    "modelStreamErrorException": 500,
    "modelTimeoutException": 408,
    "resourceNotFoundException": 404,
    "serviceQuotaExceededException": 429,
    "serviceUnavailableException": 503,
    "throttlingException": 429,
    "validationException": 400,
}


class _Message(NamedTuple):
    headers: Mapping[str, str]
    payload: bytes


class EventStreamDecoder:
    """Turns the bytes of a stream into events as they come."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[ServerEvent]:
        """Take bytes in and yield the events that are whole.

        `UpstreamError` where a message reports an error or is not as it was sent.
        """
        self._buffer += data
        while (message := self._next()) is not None:
            event = _event(message)
            if event is not None:
                yield event

    def close(self) -> None:
        """Check that nothing is left over; `UpstreamError` where the stream was cut."""
        if self._buffer:
            raise UpstreamError("ended the stream inside an event", status=None)

    def _next(self) -> _Message | None:
        if len(self._buffer) < _PRELUDE.size:
            return None
        total, of_headers, checksum = _PRELUDE.unpack_from(self._buffer)
        if binascii.crc32(self._buffer[:8]) != checksum:
            raise _damaged()
        if total > _LARGEST or of_headers > total - _PRELUDE.size - _CRC:
            raise _damaged()
        if len(self._buffer) < total:
            return None
        message = bytes(self._buffer[:total])
        del self._buffer[:total]
        if binascii.crc32(message[:-_CRC]) != int.from_bytes(message[-_CRC:]):
            raise _damaged()
        start = _PRELUDE.size + of_headers
        return _Message(_headers(message[_PRELUDE.size : start]), message[start:-_CRC])


def _headers(raw: bytes) -> Mapping[str, str]:
    """Return the headers that are text."""
    found: dict[str, str] = {}
    at = 0
    try:
        while at < len(raw):
            end = at + 1 + raw[at]
            name, kind = raw[at + 1 : end].decode(), raw[end]
            at = end + 1
            if kind in _SIZES:
                at += _SIZES[kind]
                continue
            size = int.from_bytes(raw[at : at + 2])
            if kind == _TEXT:
                found[name] = raw[at + 2 : at + 2 + size].decode()
            at += 2 + size
    except (IndexError, UnicodeDecodeError) as error:
        raise _damaged() from error
    return found


def _event(message: _Message) -> ServerEvent | None:
    try:
        body = orjson.loads(message.payload or b"{}")
    except orjson.JSONDecodeError as error:
        raise _damaged() from error
    if not isinstance(body, dict):
        raise _damaged()
    if message.headers.get(":message-type") != "event":
        raise _reported(message.headers, body)
    if message.headers.get(":event-type") != "chunk":
        return None
    try:
        event = read_json(b64decode(as_text(body.get("bytes"))))
    except ValueError as error:
        raise _damaged() from error
    if not isinstance(event, dict):
        raise _damaged()
    event.pop(_METRICS, None)
    return ServerEvent(as_text(event.get("type")), event)


def _reported(headers: Mapping[str, str], body: JsonObject) -> UpstreamError:
    kind = headers.get(":exception-type") or headers.get(":error-code") or "error"
    said = as_text(body.get("message")) or headers.get(":error-message", "")
    status = body.get("originalStatusCode")
    known = status if isinstance(status, int) and 400 <= status < 600 else _STATUSES.get(kind)
    return UpstreamError(
        f"failed while answering: {said[:300] or kind}", status=known, said=said[:300]
    )


def _damaged() -> UpstreamError:
    return UpstreamError("sent an event that cannot be understood", status=None)
