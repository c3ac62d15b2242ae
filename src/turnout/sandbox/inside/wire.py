"""Frames between the host and the resident agent, and what of an output they carry.

A frame is `length (of what follows), kind, command id`, then its payload. Payloads of several
fields join them by NUL, which no argument, path or variable can hold.
"""

from __future__ import annotations

import os
import struct

__all__ = [
    "CANCEL",
    "CANCELLED",
    "CREDIT",
    "CREDIT_FRAME",
    "DONE",
    "DONE_FRAME",
    "DRAIN_SECONDS",
    "EXEC",
    "EXITED",
    "FRAME_COST",
    "GRACE_SECONDS",
    "HEADER",
    "HELLO",
    "INPUT",
    "KILL_ALL",
    "MAX_FRAME",
    "NOT_STARTED",
    "OUTPUT_LIMIT",
    "OUT_OF_MEMORY",
    "PAUSE",
    "READ",
    "READ_FILE",
    "REFUSED",
    "REPLY",
    "RESUME",
    "STDERR",
    "STDOUT",
    "TIMEOUT",
    "WINDOW",
    "WRITE_FILE",
    "Sender",
    "Stream",
]

HEADER = struct.Struct(">IBI")
DONE = struct.Struct(">BiidQQQQdQ")
"""Reason, exit status or -1, signal or 0, seconds, bytes of both streams, dropped bytes of both,
seconds of CPU, largest resident size."""
READ = struct.Struct(">QI")
"""Size and mode of a file; a slice of it follows."""
CREDIT = struct.Struct(">I")

MAX_FRAME = 8 << 20
WINDOW = 1 << 20
"""Bytes of one standard input, or one raw output, that may be under way unread."""
FRAME_COST = 64
"""What a frame counts beside its payload, so that many empty ones fill a window too."""
DRAIN_SECONDS = 0.15
"""How long output is awaited after the main process ended."""
GRACE_SECONDS = 1.0
"""Between TERM and KILL."""

EXEC, INPUT, CANCEL, KILL_ALL, READ_FILE, WRITE_FILE, PAUSE, RESUME = 1, 2, 3, 4, 5, 6, 7, 8
HELLO, STDOUT, STDERR, DONE_FRAME, REPLY, REFUSED, CREDIT_FRAME = 16, 17, 18, 19, 20, 21, 22
EXITED, TIMEOUT, OUTPUT_LIMIT, CANCELLED, NOT_STARTED, OUT_OF_MEMORY = 0, 1, 2, 3, 4, 5

_SLACK = 1 << 18


class Sender:
    """Sends frames over a descriptor, waiting for room."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def send(self, kind: int, call_id: int, payload: bytes = b"") -> None:
        """Send one frame."""
        frame = memoryview(HEADER.pack(len(payload) + 5, kind, call_id) + payload)
        while frame:
            frame = frame[os.write(self._fd, frame) :]


class Stream:
    """One output stream of a command: what is passed on, kept back or dropped."""

    __slots__ = ("_buffer", "_head", "_late", "_tail", "fd", "kind", "raw", "total")

    def __init__(self, fd: int, kind: int, head: int, tail: int, raw: bool) -> None:
        self.fd = fd
        self.kind = kind
        self.raw = raw
        self.total = 0
        self._head = head
        self._tail = tail
        self._late = 0
        self._buffer = bytearray()

    def feed(self, data: bytes) -> bytes:
        """Count `data` and return what of it is to be sent now."""
        self.total += len(data)
        if self.raw:
            return data
        now = data[: self._head]
        self._head -= len(now)
        self._late += len(data) - len(now)
        self._buffer += data[len(now) :]
        surplus = len(self._buffer) - self._tail
        if surplus > self._tail + _SLACK:
            del self._buffer[:surplus]
        return now

    def rest(self) -> bytes:
        """Return the tail, to be sent at the end."""
        return bytes(self._buffer[max(0, len(self._buffer) - self._tail) :])

    def omitted(self) -> int:
        """Return how many bytes between head and tail were dropped."""
        return max(0, self._late - self._tail)
