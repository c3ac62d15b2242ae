"""A streamed messages answer as server-sent events."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import orjson

from turnout.core.ids import ModelId, RequestId
from turnout.core.json import JsonObject, JsonValue, as_object, as_text
from turnout.core.usage import Usage
from turnout.errors import TurnoutError
from turnout.gateway.dialog.conversation import Reasoning
from turnout.gateway.dialog.events import (
    CallDelta,
    CallOpened,
    Event,
    ForeignPart,
    Native,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
)
from turnout.gateway.exchange import InferenceRequest, StreamDelta, StreamEnd, UpstreamError
from turnout.gateway.wire.messages.content.blocks import write_thought
from turnout.gateway.wire.messages.errors import write_error
from turnout.gateway.wire.messages.finishing import stop_reason
from turnout.gateway.wire.messages.reply import shows_thoughts
from turnout.gateway.wire.messages.usage import read_usage, write_usage
from turnout.gateway.wire.report import write_report
from turnout.gateway.wire.sse import named_event, raw_event

__all__ = ["MessagesWriter"]


@dataclass(slots=True)
class _Block:
    """A content block that waits for its turn, or is being sent."""

    start: JsonObject
    waiting: list[JsonObject] = field(default_factory=list)
    """Deltas that were not sent yet."""
    call: int | None = None
    """Its index among the calls."""
    arguments: list[str] = field(default_factory=list)
    signature: str = ""
    """Sent last."""

    @property
    def kind(self) -> str:
        return as_text(self.start.get("type"))

    @property
    def is_whole(self) -> bool:
        """Whether nothing more can come, now that another block has begun."""
        if self.call is None:
            return True
        if not self.arguments or not self.arguments[-1].rstrip().endswith("}"):
            return False
        try:
            orjson.loads("".join(self.arguments))
        except orjson.JSONDecodeError:
            return False
        return True


class MessagesWriter:
    """A `StreamWriter`: each content block is closed before the next is opened.

    The upstream's own events are sent as they came. Made afresh, the block that was begun first
    is sent as it grows; what begins before it is whole waits.
    """

    def __init__(self, request: InferenceRequest, id_: RequestId) -> None:
        self._request = request
        self._id = id_
        self._thoughts = shows_thoughts(request)
        self._started = False
        self._places = 0
        """Content blocks opened so far."""
        self._native_shift = 0
        """How much later a native block stands here than at its upstream."""
        self._native_open = False
        self._queue: list[_Block] = []
        """The block that is being sent, and those that wait."""
        self._sending = False
        self._called = False
        self._refused = False

    def piece(self, delta: StreamDelta) -> bytes:
        """Return the events of one piece; empty where it shows nothing in this shape."""
        native = delta.piece.native
        if native is not None and native.shape == "messages":
            begins = native.name == "message_start"
            started = b"" if begins else self._start(delta.model)
            return b"".join((started, *self._native(native)))
        if not delta.piece.events:
            return b""
        started = self._start(delta.model)
        return b"".join((started, *self._events(delta.piece.events)))

    def end(self, end: StreamEnd) -> bytes:
        """Return the last events, with the `routing` report and the usage."""
        written = [self._start(end.report.model), *self._close_all()]
        delta = next((n.value for n in end.ending.natives if n.shape == "messages"), None)
        counts = end.ending.usage_native if delta is not None else None
        if delta is None:
            delta = {
                "type": "message_delta",
                "delta": {
                    "stop_reason": self._stop_reason(end),
                    "stop_sequence": end.ending.stop_sequence,
                },
            }
        last: dict[str, JsonValue] = {
            **delta,
            "usage": {**write_usage(end.usage), **(counts or {})},
            "routing": write_report(end.report),
        }
        written.append(named_event("message_delta", last))
        written.append(named_event("message_stop", {"type": "message_stop"}))
        return b"".join(written)

    def error(self, error: TurnoutError | UpstreamError) -> bytes:
        """Return the event of an error after the stream began; nothing follows it."""
        return b"event: error\n" + raw_event(write_error(error).body)

    def _start(self, model: ModelId) -> bytes:
        if self._started:
            return b""
        self._started = True
        message: JsonObject = {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": self._first_counts({}),
        }
        return named_event("message_start", {"type": "message_start", "message": message})

    def _first_counts(self, sent: JsonObject) -> JsonObject:
        """Return counts of the input: the upstream's where it has any yet, else our estimate."""
        known = read_usage(sent)
        if known is not None and known.input_tokens:
            return sent
        return {**sent, **write_usage(Usage(self._request.input_tokens_estimate))}

    def _native(self, native: Native) -> Iterator[bytes]:
        value = native.value
        match native.name:
            case "message_start" if self._started:
                return
            case "message_start":
                self._started = True
                message = as_object(value.get("message"))
                counts = self._first_counts(as_object(message.get("usage")))
                value = {**value, "message": {**message, "id": self._id, "usage": counts}}
            case "content_block_start":
                yield from self._close_all()
                index = value.get("index")
                self._native_shift = self._places - (index if isinstance(index, int) else 0)
                self._places += 1
                self._native_open = True
                value = self._shifted(value)
            case "content_block_delta":
                value = self._shifted(value)
            case "content_block_stop":
                self._native_open = False
                value = self._shifted(value)
            case _:
                pass
        yield named_event(native.name, value)

    def _shifted(self, value: JsonObject) -> JsonObject:
        index = value.get("index")
        if not self._native_shift or not isinstance(index, int):
            return value
        return {**value, "index": index + self._native_shift}

    def _events(self, events: tuple[Event, ...]) -> Iterator[bytes]:
        for event in events:
            match event:
                case TextDelta() | RefusalDelta():
                    self._refused = self._refused or isinstance(event, RefusalDelta)
                    if event.text:
                        block = self._block("text", {"type": "text", "text": ""})
                        block.waiting.append({"type": "text_delta", "text": event.text})
                case ReasoningDelta():
                    if self._thoughts:
                        self._think(event)
                case CallOpened():
                    self._called = True
                    start: JsonObject = {
                        "type": "tool_use",
                        "id": event.id,
                        "name": event.name,
                        "input": {},
                    }
                    self._queue.append(_Block(start, call=event.index))
                case CallDelta():
                    self._argue(event)
                case ForeignPart():
                    if event.part.shape == "messages":
                        self._queue.append(_Block(event.part.value))
        yield from self._send()

    def _block(self, kind: str, start: JsonObject) -> _Block:
        """Return the newest block where more of that kind goes there, else a new one."""
        last = self._queue[-1] if self._queue else None
        if last is None or last.kind != kind or last.signature:
            last = _Block(start)
            self._queue.append(last)
        return last

    def _think(self, event: ReasoningDelta) -> None:
        if not event.text and not (self._queue and self._queue[-1].kind == "thinking"):
            return
        start: JsonObject = {"type": "thinking", "thinking": "", "signature": ""}
        block = self._block("thinking", start)
        if event.text:
            block.waiting.append({"type": "thinking_delta", "thinking": event.text})
        if event.signature or event.encrypted:
            signed = write_thought(Reasoning(" ", event.signature, event.encrypted))
            block.signature = as_text(signed.get("signature"))

    def _argue(self, event: CallDelta) -> None:
        block = next((b for b in self._queue if b.call == event.index), None)
        # A call that was sent whole can only be followed by space.
        if block is not None and event.arguments:
            block.arguments.append(event.arguments)
            block.waiting.append({"type": "input_json_delta", "partial_json": event.arguments})

    def _send(self) -> Iterator[bytes]:
        """Send what may be sent: all of the first block, and the next once that is whole."""
        while self._queue:
            block = self._queue[0]
            yield from self._send_more(block)
            if len(self._queue) == 1 or not block.is_whole:
                return
            yield from self._close(block)

    def _send_more(self, block: _Block) -> Iterator[bytes]:
        place = self._places
        if not self._sending:
            if self._native_open:
                self._native_open = False
                yield _stop(place - 1)
            self._sending = True
            yield named_event(
                "content_block_start",
                {"type": "content_block_start", "index": place, "content_block": block.start},
            )
        for delta in block.waiting:
            yield _delta(place, delta)
        block.waiting.clear()

    def _close(self, block: _Block) -> Iterator[bytes]:
        if block.kind == "thinking":
            yield _delta(self._places, {"type": "signature_delta", "signature": block.signature})
        yield _stop(self._places)
        self._queue.remove(block)
        self._places += 1
        self._sending = False

    def _close_all(self) -> Iterator[bytes]:
        while self._queue:
            block = self._queue[0]
            yield from self._send_more(block)
            yield from self._close(block)
        if self._native_open:
            self._native_open = False
            yield _stop(self._places - 1)

    def _stop_reason(self, end: StreamEnd) -> str:
        finish = "content_filter" if self._refused and not self._called else end.finish
        return stop_reason(finish, called=self._called, stop_sequence=end.ending.stop_sequence)


def _delta(place: int, delta: JsonObject) -> bytes:
    return named_event(
        "content_block_delta", {"type": "content_block_delta", "index": place, "delta": delta}
    )


def _stop(place: int) -> bytes:
    return named_event("content_block_stop", {"type": "content_block_stop", "index": place})
