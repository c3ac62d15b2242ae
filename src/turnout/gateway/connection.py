"""One connection of a client, with bounds on what it sends and on how long it keeps us waiting."""

from asyncio import BaseTransport, TimerHandle, Transport
from typing import Any, Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["BoundedConnection"]

_LARGEST_HEAD: Final = 64 * 2**10
"""Bytes that may come without any of them being part of a body."""


class BoundedConnection(HttpToolsProtocol):
    """uvicorn's, which itself would wait for ever and keep whatever comes."""

    longest_wait = 60.0
    """Seconds in which a request must be known, and in which the rest of one that was answered
    must come."""
    longest_unread = 150.0
    """Seconds that a client may leave an answer unread; whoever sends it has given up before."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._moved = False
        """Whether the bytes that came last made a request known, or were part of a body."""
        self._unread = 0
        """Bytes since then."""
        self._asked = False
        """Whether there was a request."""
        self._in_head = True
        self._waiting: TimerHandle | None = None
        self._unheard: TimerHandle | None = None

    def connection_made(self, transport: BaseTransport) -> None:
        """Begin to wait for a request."""
        super().connection_made(cast("Transport", transport))
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """End all waiting."""
        self._waited()
        self._heard()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes in, unless there are too many that amount to nothing."""
        self._moved = False
        super().data_received(data)
        if self._moved:
            self._unread = 0
        else:
            self._unread += len(data)
            if self._unread > _LARGEST_HEAD:
                self._refuse()
                return
        if self._in_head and self._waiting is None:
            self._wait()

    def on_message_begin(self) -> None:
        """Note that a head begins."""
        self._in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Note that the head is there."""
        self._moved, self._asked, self._in_head = True, True, False
        self._waited()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Note that a body grows."""
        self._moved = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that a request is there whole."""
        self._moved = True
        self._waited()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the rest of a request that was answered before it was there."""
        super().on_response_complete()
        if self.cycle.response_complete and self.cycle.more_body and self._waiting is None:
            self._wait()

    def pause_writing(self) -> None:
        """Begin to wait for a client that does not read."""
        super().pause_writing()
        if self._unheard is None:
            self._unheard = self.loop.call_later(self.longest_unread, self.transport.abort)

    def resume_writing(self) -> None:
        """Note that the client reads again."""
        self._heard()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """End a connection that is idle; what was not read by now never will be."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    def _refuse(self) -> None:
        if self.transport.is_closing():
            return
        if not self._asked or self.cycle.response_complete:
            self.send_400_response(f"The head is larger than {_LARGEST_HEAD} bytes.")
        else:
            self.transport.abort()

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(self.longest_wait, self.transport.abort)

    def _waited(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _heard(self) -> None:
        if self._unheard is not None:
            self._unheard.cancel()
            self._unheard = None
