"""A streamed answer as the events of the responses shape."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from turnout.core.ids import ModelId, RequestId
from turnout.core.json import JsonObject, JsonValue, as_object, as_text
from turnout.errors import TurnoutError
from turnout.gateway.dialog.conversation import Call, Foreign, Reasoning, Refusal, Text
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
from turnout.gateway.exchange import StreamDelta, StreamEnd, UpstreamError
from turnout.gateway.wire.errors import error_status, error_text
from turnout.gateway.wire.report import write_report
from turnout.gateway.wire.responses.answer import (
    call_item,
    content_part,
    finished_item,
    reasoning_item,
    write_usage,
)
from turnout.gateway.wire.responses.envelope import Envelope, ending
from turnout.gateway.wire.responses.items import CALLS
from turnout.gateway.wire.responses.tools import Declared
from turnout.gateway.wire.sse import named_event

__all__ = ["ResponsesWriter"]

_CODES = {400: "invalid_prompt", 429: "rate_limit_exceeded"}
"""What the API calls some failures; it calls all others `server_error`."""

_ARGUED: Mapping[str, str] = {
    "function_call": "response.function_call_arguments",
    "custom_tool_call": "response.custom_tool_call_input",
}

Tools = Callable[[], Mapping[str, Declared]]
Emit = Callable[[str, JsonObject], None]


class ResponsesWriter:
    """Writes one answer; what an upstream of this shape sent passes under our id."""

    def __init__(
        self, envelope: Envelope, tools: Tools, request_id: RequestId, model: ModelId
    ) -> None:
        self._envelope = envelope
        self._model = model
        """Whoever answers; until that is known, what was asked for."""
        self._number = 0
        self._started = False
        self._out: list[bytes] = []
        self._items = _Items(tools, request_id, self._emit)

    def piece(self, delta: StreamDelta) -> bytes:
        """Return the events of one piece."""
        self._model = delta.model
        native = delta.piece.native
        if native is not None and native.shape == "responses":
            self._pass(native)
        else:
            for event in delta.piece.events:
                self._start()
                self._items.write(event, self._model)
        return self._flush()

    def end(self, end: StreamEnd) -> bytes:
        """Return the last events; their response carries the usage and the `routing` report."""
        self._model = end.report.model
        self._start()
        said: dict[str, JsonValue] = {
            "usage": write_usage(end.usage),
            "routing": write_report(end.report),
        }
        last = next(iter(end.ending.natives), None)
        if last is not None and last.shape == "responses" and not self._items.output:
            said["usage"] = end.ending.usage_native or said["usage"]
            whole = self._envelope.native(as_object(last.value.get("response")), self._model)
        else:
            state = ending(end.finish)
            self._items.close_all(self._model, cut=state["status"] == "incomplete")
            said = {**state, "output": self._items.output, **said}
            whole = self._envelope.written(self._model, said)
        self._emit(f"response.{whole['status']}", {"response": {**whole, **said}})
        return self._flush()

    def error(self, error: TurnoutError | UpstreamError) -> bytes:
        """Return the event of an error after the stream began; nothing follows it."""
        self._start()
        said = (isinstance(error, UpstreamError) and error.said) or error_text(error)
        code = _CODES.get(error_status(error), "server_error")
        failed: JsonObject = {
            "status": "failed",
            "error": {"code": code, "message": said},
            "output": self._items.output,
        }
        self._emit("response.failed", {"response": self._envelope.written(self._model, failed)})
        return self._flush()

    def _pass(self, native: Native) -> None:
        value = native.value
        if native.name == "response.created" and not self._started:
            self._started = True
        elif native.name in {"response.created", "response.in_progress"} and self._items.output:
            return
        self._start()
        if isinstance(value.get("response"), dict):
            response = self._envelope.native(as_object(value["response"]), self._model)
            value = {**value, "response": response}
        self._emit(native.name, value)

    def _start(self) -> None:
        if not self._started:
            self._started = True
            for name in ("response.created", "response.in_progress"):
                self._emit(name, {"response": self._envelope.written(self._model, {})})

    def _emit(self, name: str, said: JsonObject) -> None:
        event = {**said, "type": name, "sequence_number": self._number}
        self._number += 1
        self._out.append(named_event(name, event))

    def _flush(self) -> bytes:
        written = b"".join(self._out)
        self._out.clear()
        return written


@dataclass(slots=True)
class _Open:
    """An item that is under way."""

    at: int
    id: str
    part: Text | Refusal | Reasoning | Call
    """What it is, without its words; of a message, its last part."""
    said: list[str] = field(default_factory=list)
    """What has come of it, in its pieces."""
    content: list[JsonValue] = field(default_factory=list)
    """A message's parts before that."""
    shown: bool = False
    """Whether what holds the text was opened."""


class _Items:
    """The output items, each opened before its deltas and closed after them."""

    def __init__(self, tools: Tools, request_id: RequestId, emit: Emit) -> None:
        self.output: list[JsonValue] = []
        """Every item that was opened, as it is now."""
        self._tools = tools
        self._id = request_id
        self._emit = emit
        self._said: _Open | None = None
        """The message or the thought under way."""
        self._calls: dict[int, _Open] = {}
        """Calls take turns, so they are closed at the end."""

    def write(self, event: Event, model: ModelId) -> None:
        """Write what an event adds."""
        match event:
            case TextDelta():
                self._say(Text(event.text), model)
            case RefusalDelta():
                self._say(Refusal(event.text), model)
            case ReasoningDelta():
                self._think(event, model)
            case CallOpened():
                self._close_said(model)
                call = Call(event.id, event.name, "", event.type)
                self._calls[event.index] = self._begin(call, call_item(call, self._tools()))
            case CallDelta():
                self._argue(self._calls[event.index], event.arguments)
            case ForeignPart():
                if event.part.shape == "responses":
                    self._close_said(model)
                    self._foreign(event.part)
            case _:
                assert_never(event)

    def close_all(self, model: ModelId, *, cut: bool) -> None:
        """Close what is open; `cut`: the last item is incomplete."""
        last = len(self.output) - 1
        self._close_said(model, cut=cut and self._said is not None and self._said.at == last)
        for call in self._calls.values():
            self._close_call(call, cut=cut and call.at == last)
        self._calls.clear()

    def _say(self, piece: Text | Refusal, model: ModelId) -> None:
        if not piece.text:
            return
        now = self._said
        if now is None or isinstance(now.part, Reasoning | Call):
            self._close_said(model)
            now = self._said = self._begin(type(piece)(""), {"type": "message", "content": []})
        elif type(now.part) is not type(piece):
            self._close_content(now)
            now.part, now.shown = type(piece)(""), False
            now.said.clear()
        if not now.shown:
            now.shown = True
            self._of(now, "response.content_part.added", {"part": content_part(type(piece)(""))})
        now.said.append(piece.text)
        if isinstance(piece, Text):
            self._of(now, "response.output_text.delta", {"delta": piece.text, "logprobs": []})
        else:
            self._of(now, "response.refusal.delta", {"delta": piece.text})

    def _think(self, event: ReasoningDelta, model: ModelId) -> None:
        now = self._said
        if now is None or not isinstance(now.part, Reasoning):
            self._close_said(model)
            now = self._said = self._begin(Reasoning(""), {"type": "reasoning", "summary": []})
        now.said.append(event.text)
        if event.text:
            if not now.shown:
                now.shown = True
                self._of(now, "response.reasoning_summary_part.added", {"part": _summary("")})
            self._of(now, "response.reasoning_summary_text.delta", {"delta": event.text})
        now.part = Reasoning("", event.signature, event.encrypted)
        if event.signature or event.encrypted:
            self._close_said(model)

    def _argue(self, now: _Open, said: str) -> None:
        if not isinstance(now.part, Call):
            return
        now.said.append(said)
        form = as_text(as_object(self.output[now.at]).get("type"))
        # What has to be taken out of its wrapping is shown once it is whole.
        if form == ("custom_tool_call" if now.part.type == "custom" else "function_call"):
            now.shown = True
            self._of(now, f"{_ARGUED[form]}.delta", {"delta": said})

    def _foreign(self, part: Foreign) -> None:
        at = len(self.output)
        item = finished_item(part.value, self._id, at)
        form, status = as_text(item["type"]), as_text(item.get("status"))
        self.output.append(item)
        begun: JsonObject = {**item, "status": "in_progress"}
        self._emit("response.output_item.added", {"item": begun, "output_index": at})
        if form == "mcp_call":
            place: JsonObject = {"item_id": item["id"], "output_index": at}
            self._emit("response.mcp_call.in_progress", place)
            argued = {**place, "arguments": item.get("arguments")}
            self._emit("response.mcp_call_arguments.done", argued)
            name = "failed" if status == "failed" else "completed"
            self._emit(f"response.mcp_call.{name}", place)
        self._emit("response.output_item.done", {"item": item, "output_index": at})

    def _begin(self, part: Text | Refusal | Reasoning | Call, item: JsonObject) -> _Open:
        at = len(self.output)
        begun: JsonObject = {**finished_item(item, self._id, at), "status": "in_progress"}
        argued = CALLS.get(as_text(begun["type"]))
        if argued is not None:
            begun = {**begun, argued: ""}
        self.output.append(begun)
        self._emit("response.output_item.added", {"item": begun, "output_index": at})
        return _Open(at, as_text(begun["id"]), part)

    def _close_said(self, model: ModelId, *, cut: bool = False) -> None:
        now, self._said = self._said, None
        if now is None:
            return
        if isinstance(now.part, Reasoning):
            text = "".join(now.said)
            if now.shown:
                self._of(now, "response.reasoning_summary_text.done", {"text": text})
                part = {"part": _summary(text)}
                self._of(now, "response.reasoning_summary_part.done", part)
            whole = Reasoning(text, now.part.signature, now.part.encrypted)
            self._done(now, reasoning_item(whole, model), cut=cut)
            return
        self._close_content(now)
        self._done(now, {"type": "message", "content": now.content}, cut=cut)

    def _close_content(self, now: _Open) -> None:
        if not isinstance(now.part, Text | Refusal):
            return
        text = "".join(now.said)
        part = content_part(type(now.part)(text))
        if isinstance(now.part, Text):
            said: JsonObject = {"text": text, "logprobs": []}
            self._of(now, "response.output_text.done", said)
        else:
            self._of(now, "response.refusal.done", {"refusal": text})
        self._of(now, "response.content_part.done", {"part": part})
        now.content.append(part)

    def _close_call(self, now: _Open, *, cut: bool) -> None:
        if not isinstance(now.part, Call):
            return
        whole = Call(now.part.id, now.part.name, "".join(now.said), now.part.type)
        item = call_item(whole, self._tools())
        form = as_text(item["type"])
        if form in _ARGUED:
            argued = item[CALLS[form]]
            if argued and not now.shown:
                self._of(now, f"{_ARGUED[form]}.delta", {"delta": argued})
            self._of(now, f"{_ARGUED[form]}.done", {CALLS[form]: argued, "name": item["name"]})
        self._done(now, item, cut=cut)

    def _done(self, now: _Open, item: JsonObject, *, cut: bool) -> None:
        final = finished_item(item, self._id, now.at, cut=cut)
        self.output[now.at] = final
        self._emit("response.output_item.done", {"item": final, "output_index": now.at})

    def _of(self, now: _Open, name: str, said: JsonObject) -> None:
        place: dict[str, JsonValue] = {"item_id": now.id, "output_index": now.at}
        if isinstance(now.part, Reasoning):
            place["summary_index"] = 0
        elif not isinstance(now.part, Call):
            place["content_index"] = len(now.content)
        self._emit(name, {**place, **said})


def _summary(said: str) -> JsonObject:
    return {"type": "summary_text", "text": said}
