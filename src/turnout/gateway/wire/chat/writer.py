"""A streamed chat completions answer as server-sent events."""

import time
from typing import assert_never

from turnout.core.ids import RequestId
from turnout.core.json import JsonObject, JsonValue
from turnout.errors import TurnoutError
from turnout.gateway.dialog.events import (
    CallDelta,
    CallOpened,
    Event,
    ForeignPart,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
)
from turnout.gateway.exchange import InferenceRequest, StreamDelta, StreamEnd, UpstreamError
from turnout.gateway.wire.chat.errors import write_error
from turnout.gateway.wire.chat.free_text import FreeTextCalls, free_text_tools
from turnout.gateway.wire.chat.usage import write_usage
from turnout.gateway.wire.report import write_report
from turnout.gateway.wire.sse import data_event, raw_event

__all__ = ["ChatWriter"]

_DONE = b"data: [DONE]\n\n"
_KIND = "chat.completion.chunk"


class ChatWriter:
    """Writes chunks: the upstream's own where it speaks this shape, else afresh."""

    def __init__(self, request: InferenceRequest, request_id: RequestId) -> None:
        self._id = request_id
        self._include_usage = request.include_usage
        self._free_text = FreeTextCalls(free_text_tools(request.body))
        self._created = int(time.time())
        self._began = False
        self._custom: set[int] = set()

    def piece(self, delta: StreamDelta) -> bytes:
        """Return the chunks of one piece."""
        native = delta.piece.native
        if native is not None and native.shape == "chat":
            self._began = True
            return data_event({**native.value, "id": self._id, "object": _KIND})
        events = b""
        for event in self._free_text.seen(delta.piece.events):
            events += self._event(event, delta.model)
        return events

    def end(self, end: StreamEnd) -> bytes:
        """Return the last chunks: the finish reasons with the `routing` report, usage if asked."""
        for native in end.ending.natives:
            if native.shape == "chat":
                last = {**native.value, "id": self._id, "object": _KIND}
                return self._last(last, end, end.ending.usage_native)
        model = end.report.model
        late = b"".join(self._event(event, model) for event in self._free_text.rest())
        if not self._began:
            late = data_event(self._chunk(model, {}))
        last = self._envelope(model) | {"choices": [_finishing(end)]}
        return late + self._last(last, end, None)

    def error(self, error: TurnoutError | UpstreamError) -> bytes:
        """Return the event of an error after the stream began; no `[DONE]` follows it."""
        return raw_event(write_error(error).body)

    def _last(self, chunk: JsonObject, end: StreamEnd, counts: JsonObject | None) -> bytes:
        events = data_event({**chunk, "routing": write_report(end.report)})
        if self._include_usage:
            usage = counts or write_usage(end.usage)
            events += data_event({**chunk, "choices": [], "usage": usage})
        return events + _DONE

    def _event(self, event: Event, model: str) -> bytes:
        said = self._delta(event)
        return data_event(self._chunk(model, said)) if said else b""

    def _envelope(self, model: str) -> dict[str, JsonValue]:
        return {"id": self._id, "object": _KIND, "created": self._created, "model": model}

    def _chunk(self, model: str, delta: JsonObject) -> JsonObject:
        if not self._began:
            self._began = True
            delta = {"role": "assistant", **delta}
        choice: JsonObject = {"index": 0, "delta": delta, "finish_reason": None}
        return self._envelope(model) | {"choices": [choice]}

    def _delta(self, event: Event) -> JsonObject | None:
        match event:
            case TextDelta():
                return {"content": event.text} if event.text else None
            case ReasoningDelta():
                return {"reasoning_content": event.text} if event.text else None
            case RefusalDelta():
                return {"refusal": event.text} if event.text else None
            case CallOpened():
                return {"tool_calls": [self._opening(event)]}
            case CallDelta():
                custom = event.index in self._custom
                said: JsonObject = {"input" if custom else "arguments": event.arguments}
                kind = "custom" if custom else "function"
                return {"tool_calls": [{"index": event.index, kind: said}]}
            case ForeignPart():
                return event.part.value if event.part.shape == "chat" else None
            case _:
                assert_never(event)

    def _opening(self, event: CallOpened) -> JsonObject:
        said: dict[str, JsonValue] = {"name": event.name}
        if event.type == "custom":
            self._custom.add(event.index)
            said["input"] = ""
        else:
            said["arguments"] = ""
        return {"index": event.index, "id": event.id, "type": event.type, event.type: said}


def _finishing(end: StreamEnd) -> JsonObject:
    return {"index": 0, "delta": {}, "finish_reason": end.finish}
