"""Server-sent events of a run's record, which a client may leave and come back to."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from turnout.core.events import Entry
from turnout.core.json import ascii_json
from turnout.errors import GatewayError, TurnoutError
from turnout.gateway.delivery import AppLimits, ClientGoneError, Connected, send_events
from turnout.gateway.exchange import UpstreamError
from turnout.gateway.wire.errors import error_text
from turnout.web.runs.views import entry_json

__all__ = ["EventStream", "Streams", "resumed_after"]

_OPENING: Final = b"retry: 2000\n\n"
"""Milliseconds after which a client comes back; sent at once, so that it knows it is connected."""
_MOST_STREAMS: Final = 5_000
_MOST_OF_ONE: Final = 200
"""Of one key: nobody can take all that there are from the others."""
_LOOKS_EVERY: Final = 1.0
"""Seconds after which it is asked again whether somebody may still read, though nothing happens."""
_LONGEST_ID: Final = 15
"""Digits."""


def _for_good() -> None:
    """Let it be."""


async def _written(entries: AsyncGenerator[Entry, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(entries):
        async for entry in entries:
            head = f"id: {entry.seq}\nevent: {entry.event.type}\n"
            yield f"{head}data: {entry_json(entry)}\n\n".encode()


class Streams:
    """The streams that are open: not too many at once, and none once the service stops."""

    def __init__(
        self,
        limits: AppLimits | None = None,
        *,
        most: int = _MOST_STREAMS,
        most_of_one: int = _MOST_OF_ONE,
    ) -> None:
        self._keep_alive = (limits or AppLimits()).keep_alive
        self._most = most
        self._most_of_one = most_of_one
        self._open: set[asyncio.Task[None]] = set()
        self._held = Counter[str]()
        self._closed = False

    def of(
        self,
        entries: AsyncGenerator[Entry, None],
        still: Callable[[], None] = _for_good,
        whose: str = "",
    ) -> "EventStream":
        """Return the answer that streams entries, each one an event; otherwise as `sending`."""
        return self.sending(_written(entries), still, whose)

    def sending(
        self,
        events: AsyncGenerator[bytes, None],
        still: Callable[[], None] = _for_good,
        whose: str = "",
    ) -> "EventStream":
        """Return the answer that sends events to the holder of the key `whose`.

        `GatewayError` (429) where the holder has too many open, 503 where all have together. It
        ends, with an error that says why, once `still` raises one; that is asked before every
        event, and about once a second.
        """
        if self._held[whose] >= self._most_of_one:
            raise GatewayError(
                f"Your key has {self._most_of_one} event streams open, as many as one may have.",
                status=429,
                code="too_many_streams",
                mend="Close some, or read `/record`.",
                retry_after=2,
            )
        if self._closed or len(self._open) >= self._most:
            raise GatewayError(
                "No more event streams can be opened here now.",
                status=503,
                code="too_many_streams",
                mend="Come back in a moment, or read `/record`.",
                retry_after=2,
            )
        return EventStream(self, _allowed(events, still), still, whose)

    def close(self) -> None:
        """End every stream; clients go on elsewhere, or here later, from where they were."""
        self._closed = True
        for task in self._open:
            task.cancel()

    @property
    def closed(self) -> bool:
        """Whether the service is about to stop."""
        return self._closed

    async def run(self, stream: "EventStream", receive: Receive, send: Send) -> None:
        """Send entries until there are no more, the client goes away, or the service stops."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("runs inside a task")
        self._open.add(task)
        self._held[stream.whose] += 1
        leave, writer = _Leave(stream.still, task), _Writer()
        try:
            with Connected(receive), leave:
                await send_events(send, _opened(stream.events), writer, {}, self._keep_alive)
        except ClientGoneError:
            return
        except asyncio.CancelledError:
            if not (self._closed or leave.refused) or task.uncancel():
                raise
            last = b"" if leave.refused is None else writer.error(leave.refused)
            await send({"type": "http.response.body", "body": last, "more_body": False})
        finally:
            self._open.discard(task)
            self._held -= Counter([stream.whose])


class EventStream(Response):
    """The answer that is a stream."""

    media_type = "text/event-stream"

    def __init__(
        self,
        streams: Streams,
        events: AsyncGenerator[bytes, None],
        still: Callable[[], None],
        whose: str,
    ) -> None:
        super().__init__()
        self._streams = streams
        self.events = events
        self.still = still
        self.whose = whose

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        del scope
        await self._streams.run(self, receive, send)


class _Leave:
    """A block that is cancelled once `still` raises; `refused` is what it raised then."""

    def __init__(self, still: Callable[[], None], task: "asyncio.Task[None]") -> None:
        self.refused: TurnoutError | None = None
        self._still = still
        self._task = task

    def __enter__(self) -> None:
        self._looking = asyncio.create_task(self._look())

    def __exit__(self, *_: object) -> None:
        self._looking.cancel()

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(_LOOKS_EVERY)
            try:
                self._still()
            except TurnoutError as error:
                self.refused = error
                self._task.cancel()
                return


class _Writer:
    def error(self, error: TurnoutError | UpstreamError) -> bytes:
        code = error.code if isinstance(error, GatewayError) else "stream_failed"
        said = ascii_json({"error": {"message": error_text(error), "code": code}})
        return f"event: error\ndata: {said}\n\n".encode()


def resumed_after(last_event_id: str | None, after: int) -> int:
    """Return the place after which a stream goes on; `GatewayError` (400) for an id not of ours.

    A client that comes back says where it was by `Last-Event-ID`, which counts before `after`.
    """
    if last_event_id is None or not last_event_id.strip():
        return after
    text = last_event_id.strip()
    if not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST_ID):
        raise GatewayError(
            "`Last-Event-ID` is none that this stream has sent.",
            status=400,
            code="invalid_request",
            param="Last-Event-ID",
        )
    return int(text)


async def _opened(events: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(events):
        yield _OPENING
        async for event in events:
            yield event


async def _allowed(
    events: AsyncGenerator[bytes, None], still: Callable[[], None]
) -> AsyncGenerator[bytes, None]:
    async with aclosing(events):
        async for event in events:
            still()
            yield event
