"""An upstream's stream of the messages shape, understood."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import orjson

from turnout.core.ids import ModelId, ToolCallId, new_tool_call_id
from turnout.core.json import JsonObject, JsonValue, as_object, as_text, read_json
from turnout.core.usage import Usage
from turnout.gateway.dialog.conversation import Call, Foreign, Reasoning, Text
from turnout.gateway.dialog.events import (
    AnswerPart,
    CallDelta,
    CallOpened,
    Ending,
    Event,
    ForeignPart,
    Native,
    Piece,
    ReasoningDelta,
    Reply,
    TextDelta,
)
from turnout.gateway.dialog.fold import events_of
from turnout.gateway.exchange import ServerEvent, UpstreamError
from turnout.gateway.providers.failures import in_band
from turnout.gateway.wire.messages.finishing import agreed_reason, finish_of
from turnout.gateway.wire.messages.reply import read_message
from turnout.gateway.wire.messages.usage import merge_counts, read_usage

__all__ = ["MessagesReader"]

_STARTS: dict[str, JsonObject] = {
    "text_delta": {"type": "text", "text": ""},
    "thinking_delta": {"type": "thinking", "thinking": "", "signature": ""},
}
"""The block that a delta belongs to where the upstream began none."""
_NO_CALL = ToolCallId("")


@dataclass(slots=True)
class _Block:
    """One content block as far as it has come."""

    place: int
    """Its index, as clients see it."""
    start: JsonObject
    call: int | None = None
    """Its index among the calls."""
    call_id: ToolCallId = _NO_CALL
    said: list[str] = field(default_factory=list)
    """Text, thought, or arguments."""
    signature: str = ""

    @property
    def kind(self) -> str:
        return as_text(self.start.get("type"))

    def part(self) -> AnswerPart:
        said = "".join(self.said)
        match self.kind:
            case "text":
                return Text(said)
            case "thinking":
                return Reasoning(said, self.signature)
            case "redacted_thinking":
                return Reasoning("", encrypted=as_text(self.start.get("data")))
            case "tool_use":
                return Call(self.call_id, as_text(self.start.get("name")), said or "{}")
            case _:
                return Foreign("messages", {**self.start, **self._input(said)})

    def _input(self, said: str) -> JsonObject:
        try:
            return {"input": read_json(said)} if said else {}
        except orjson.JSONDecodeError:
            return {}


class MessagesReader:
    """A `StreamReader`; natives come with the catalog's model and with indices in order."""

    def __init__(self, model: ModelId) -> None:
        self._model = model
        self._blocks: list[_Block] = []
        self._open: _Block | None = None
        self._by_index: dict[int | None, _Block] = {}
        self._dropped: set[int | None] = set()
        """Indices of blocks that are not shown."""
        self._counts: dict[str, JsonValue] = {}
        self._delta: dict[str, JsonValue] = {}
        """What the upstream said of the end."""
        self._whole: Reply | None = None
        self._mends: dict[str, None] = {}

    @property
    def usage(self) -> Usage | None:
        """The counts so far."""
        return read_usage(self._counts)

    @property
    def repairs(self) -> tuple[str, ...]:
        """What was mended so far, one phrase for each kind."""
        return tuple(self._mends)

    def read(self, event: ServerEvent) -> Iterator[Piece]:
        """Take an event in and yield what the client may see of it.

        `UpstreamError` where it is an error in band, or more of what was never begun.
        """
        data = event.data
        match kind := as_text(data.get("type")) or event.name:
            case "message_start":
                yield self._start(data)
            case "content_block_start":
                yield from self._begin(data)
            case "content_block_delta":
                yield from self._more(data)
            case "content_block_stop":
                yield from self._stop(data)
            case "message_delta":
                self._keep_end(data)
            case "message_stop":
                pass
            case _ if kind == "error" or data.get("error"):
                raise in_band(data, "messages")
            case _ if kind == "message" or "content" in data:
                yield self._take_whole(data)
            case _:
                yield _native(data, kind)

    def end(self) -> Ending:
        """Return how the answer ends; `UpstreamError` where the upstream stopped before that."""
        if self._whole is not None:
            whole = self._whole
            return Ending(
                whole.finish,
                stop_sequence=whole.stop_sequence,
                usage_native=self._counts or None,
            )
        said = as_text(self._delta.get("stop_reason"))
        if not said:
            raise UpstreamError("ended the stream before the answer was finished", status=None)
        pieces = tuple(self._close())
        reason = agreed_reason(said, called=self._called)
        if reason != said:
            self._mends[f"stop reason made {reason}"] = None
        delta: JsonObject = {
            "type": "message_delta",
            "delta": {"stop_sequence": None, **self._delta, "stop_reason": reason},
        }
        return Ending(
            finish_of(reason),
            pieces,
            self._stop_sequence,
            (Native("messages", delta, "message_delta"),),
            self._counts or None,
        )

    def so_far(self) -> Reply:
        """Return the answer so far, or whole."""
        if self._whole is not None:
            return self._whole
        reason = as_text(self._delta.get("stop_reason")) or "end_turn"
        return Reply(
            tuple(block.part() for block in self._blocks),
            finish_of(agreed_reason(reason, called=self._called)),
            self.usage,
            self._stop_sequence,
        )

    @property
    def _called(self) -> bool:
        return any(block.call is not None for block in self._blocks)

    @property
    def _stop_sequence(self) -> str | None:
        return as_text(self._delta.get("stop_sequence")) or None

    def _start(self, data: JsonObject) -> Piece:
        message = as_object(data.get("message"))
        self._counts = merge_counts(self._counts, as_object(message.get("usage")))
        return _native({**data, "message": {**message, "model": self._model}}, "message_start")

    def _begin(self, data: JsonObject) -> Iterator[Piece]:
        start, index = as_object(data.get("content_block")), _index(data)
        yield from self._close()
        if start.get("type") == "tool_use" and not as_text(start.get("name")):
            self._mends["call without a name left out"] = None
            self._dropped.add(index)
            return
        block = self._opened(start, index)
        events: tuple[Event, ...] = ()
        match block.kind:
            case "text":
                events = self._say(block, as_text(start.get("text")))
            case "thinking":
                events = self._say(block, as_text(start.get("thinking")))
            case "redacted_thinking":
                events = (ReasoningDelta(encrypted=as_text(start.get("data"))),)
            case "tool_use":
                events = (CallOpened(block.call or 0, block.call_id, as_text(start["name"])),)
            case _:
                pass
        shown = {**data, "index": block.place, "content_block": block.start}
        yield _native(shown, "content_block_start", events)

    def _opened(self, start: JsonObject, index: int | None) -> _Block:
        block = _Block(len(self._blocks), start)
        if block.kind == "tool_use":
            made = {b.call_id for b in self._blocks}
            given = as_text(start.get("id"))
            if not given or given in made:
                self._mends["duplicate call id replaced" if given else "call id added"] = None
                given = new_tool_call_id()
                block.start = {**start, "id": given}
            block.call_id = ToolCallId(given)
            block.call = sum(b.call is not None for b in self._blocks)
        self._dropped.discard(index)
        self._blocks.append(block)
        self._by_index[index] = self._open = block
        return block

    def _more(self, data: JsonObject) -> Iterator[Piece]:
        index, delta = _index(data), as_object(data.get("delta"))
        if index in self._dropped:
            return
        block = self._open if index is None else self._by_index.get(index)
        kind = as_text(delta.get("type"))
        if block is None or block is not self._open:
            if kind not in _STARTS:
                raise UpstreamError("sent more of a part that it never began", status=None)
            self._mends["part begun that the upstream did not begin"] = None
            start = {"type": "content_block_start", "index": index, "content_block": _STARTS[kind]}
            yield from self._begin(start)
            block = self._blocks[-1]
        shown = {**data, "index": block.place}
        yield _native(shown, "content_block_delta", self._understand(block, kind, delta))

    def _understand(self, block: _Block, kind: str, delta: JsonObject) -> tuple[Event, ...]:
        match kind:
            case "text_delta":
                return self._say(block, as_text(delta.get("text")))
            case "thinking_delta":
                return self._say(block, as_text(delta.get("thinking")))
            case "signature_delta":
                block.signature += as_text(delta.get("signature"))
                return (ReasoningDelta(signature=as_text(delta.get("signature"))),)
            case "input_json_delta":
                return self._say(block, as_text(delta.get("partial_json")))
            case _:
                return ()

    def _say(self, block: _Block, said: str) -> tuple[Event, ...]:
        if not said:
            return ()
        block.said.append(said)
        if block.call is not None:
            return (CallDelta(block.call, said),)
        match block.kind:
            case "text":
                return (TextDelta(said),)
            case "thinking":
                return (ReasoningDelta(said),)
            case _:
                return ()

    def _stop(self, data: JsonObject) -> Iterator[Piece]:
        index = _index(data)
        if index in self._dropped:
            return
        if self._open is not None and (index is None or self._by_index.get(index) is self._open):
            yield from self._close()

    def _close(self) -> Iterator[Piece]:
        """Close the block that is open, if one is: the next begins only then."""
        block = self._open
        if block is None:
            return
        self._open = None
        events: list[Event] = []
        if block.call is not None and not block.said:
            # Some send the arguments with the start, most send none where there are none.
            whole = as_object(block.start.get("input"))
            events.extend(self._say(block, orjson.dumps(whole).decode()))
        elif block.kind not in {"redacted_thinking", "text", "thinking", "tool_use"}:
            part = block.part()
            events.extend([ForeignPart(part)] if isinstance(part, Foreign) else [])
        stop: JsonObject = {"type": "content_block_stop", "index": block.place}
        yield _native(stop, "content_block_stop", tuple(events))

    def _keep_end(self, data: JsonObject) -> None:
        self._counts = merge_counts(self._counts, as_object(data.get("usage")))
        self._delta = merge_counts(self._delta, as_object(data.get("delta")))

    def _take_whole(self, body: JsonObject) -> Piece:
        """Take in an answer that came whole where a stream was asked for."""
        read = read_message(body)
        self._whole = read.reply
        self._mends |= dict.fromkeys(read.repairs)
        self._counts = dict(as_object(body.get("usage")))
        return Piece(tuple(events_of(read.reply.parts)))


def _native(data: JsonObject, name: str, events: tuple[Event, ...] = ()) -> Piece:
    return Piece(events, Native("messages", data, name))


def _index(data: JsonObject) -> int | None:
    index = data.get("index")
    return index if isinstance(index, int) else None
