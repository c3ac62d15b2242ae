"""Server-sent events, decoded from bytes however they were split."""

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["EventTooLargeError", "RawEvent", "SseDecoder"]

_LARGEST = 16 * 2**20
"""Bytes of one event."""


class EventTooLargeError(Exception):
    """An event is larger than anybody sends in earnest."""


@dataclass(frozen=True, slots=True)
class RawEvent:
    """One event."""

    name: str
    """Empty where the stream names none."""
    data: str


class SseDecoder:
    """Turns the bytes of one stream into its events; comments and unknown fields are dropped."""

    def __init__(self) -> None:
        self._partial: list[bytes] = []
        self._size = 0
        self._after_cr = False
        self._started = False
        self._name = ""
        self._data: list[str] = []

    def feed(self, data: bytes) -> Iterator[RawEvent]:
        """Yield the events that `data` completes; to be run to its end."""
        if self._after_cr and data:
            data = data.removeprefix(b"\n")
            self._after_cr = False
        self._size += len(data)
        if self._size > _LARGEST:
            raise EventTooLargeError
        if b"\n" not in data and b"\r" not in data:
            self._partial.append(data)
            return
        lines = b"".join((*self._partial, data)).splitlines(keepends=True)
        self._after_cr = lines[-1].endswith(b"\r")
        self._partial = [] if lines[-1].endswith((b"\n", b"\r")) else [lines.pop()]
        for line in lines:
            if event := self._line(line.rstrip(b"\r\n")):
                yield event

    def close(self) -> RawEvent | None:
        """Return the event that the stream ended without ending; None where there is none."""
        last = b"".join(self._partial)
        self._partial = []
        if last:
            self._line(last)
        return self._dispatch()

    def _line(self, raw: bytes) -> RawEvent | None:
        if not self._started:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
            self._started = True
        if not raw:
            return self._dispatch()
        name, _, value = raw.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value
        return None

    def _dispatch(self) -> RawEvent | None:
        self._size = 0
        name, data = self._name, self._data
        self._name, self._data = "", []
        return RawEvent(name, "\n".join(data)) if data else None
