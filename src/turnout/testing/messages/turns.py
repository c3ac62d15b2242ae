"""What a scripted model of the messages shape answers, whole and in events."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import orjson

from turnout.core.json import JsonObject, JsonValue, as_object, as_text

__all__ = [
    "MessagesFault",
    "MessagesRefusal",
    "MessagesTurn",
    "StreamedEvent",
    "events",
    "message",
    "text",
    "thinking",
    "tool_use",
]

MessagesFault = Literal[
    "reset",
    "reset_after_headers",
    "cut",
    "stall",
    "stall_midway",
    "drip",
    "html",
    "content_type",
    "bad_json",
    "no_stop",
    "error_in_band",
    "usage_twice",
    "no_usage",
    "oversized",
    "whole",
]
"""How an answer goes wrong.

reset: the connection is reset before a byte; reset_after_headers: after the status line.
cut: the body ends in the middle of the last block. stall, stall_midway: silence before a byte, or
after the first half. drip: one byte a write. html: a page with status 200. content_type: right
bytes, declared as `text/plain`. no_stop: `message_stop` does not come. error_in_band: an `error`
event in the middle. usage_twice: `message_delta` comes twice. oversized: an event of 17 MiB.
whole: a stream is answered by one JSON object.
"""

_PIECE = 9
_COUNTS: JsonObject = {"input_tokens": 100, "output_tokens": 20}


@dataclass(frozen=True, slots=True)
class MessagesTurn:
    """One answer: its content blocks, as the API has them."""

    content: tuple[JsonObject, ...] = ()
    usage: JsonObject = field(default_factory=lambda: _COUNTS)
    stop_reason: str | None = None
    """None: `tool_use` where there are calls, else `end_turn`."""
    stop_sequence: str | None = None
    fault: MessagesFault | None = None
    pause: float = 0.0
    """Seconds before each event after the first."""


@dataclass(frozen=True, slots=True)
class MessagesRefusal:
    """An answer with an error status."""

    status: int
    kind: str = "api_error"
    said: str = "refused by script"
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    """Sent in place of the JSON error object."""

    def payload(self) -> bytes:
        """Return the body."""
        if self.raw is not None:
            return self.raw
        error = {"type": self.kind, "message": self.said}
        return orjson.dumps({"type": "error", "error": error, "request_id": "req_scripted"})


@dataclass(frozen=True, slots=True)
class StreamedEvent:
    """One event of a stream."""

    name: str
    data: JsonObject

    def encode(self) -> bytes:
        """Return it as it goes over the wire."""
        return b"event: " + self.name.encode() + b"\ndata: " + orjson.dumps(self.data) + b"\n\n"


def text(said: str) -> JsonObject:
    """Return a block of text."""
    return {"type": "text", "text": said}


def thinking(thought: str, signature: str) -> JsonObject:
    """Return a signed thought."""
    return {"type": "thinking", "thinking": thought, "signature": signature}


def tool_use(name: str, arguments: JsonObject, call_id: str) -> JsonObject:
    """Return a tool call."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def message(turn: MessagesTurn, model: str, number: int) -> JsonObject:
    """Return the turn as a whole answer."""
    return {
        **_head(model, number),
        "content": list(turn.content),
        "stop_reason": _stop_reason(turn),
        "stop_sequence": turn.stop_sequence,
        **({} if turn.fault == "no_usage" else {"usage": turn.usage}),
    }


def events(turn: MessagesTurn, model: str, number: int) -> Iterator[StreamedEvent]:
    """Yield the turn as the events of a stream, with a ping as the API sends one."""
    counted = turn.fault != "no_usage"
    head: JsonObject = {
        **_head(model, number),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        **({"usage": {**turn.usage, "output_tokens": 1}} if counted else {}),
    }
    yield StreamedEvent("message_start", {"type": "message_start", "message": head})
    yield StreamedEvent("ping", {"type": "ping"})
    for place, block in enumerate(turn.content):
        yield from _block(place, block)
    last: dict[str, JsonValue] = {
        "type": "message_delta",
        "delta": {"stop_reason": _stop_reason(turn), "stop_sequence": turn.stop_sequence},
    }
    if counted:
        last["usage"] = {"output_tokens": turn.usage["output_tokens"]}
    yield StreamedEvent("message_delta", last)
    if turn.fault == "usage_twice":
        yield StreamedEvent("message_delta", last)
    if turn.fault != "no_stop":
        yield StreamedEvent("message_stop", {"type": "message_stop"})


def _head(model: str, number: int) -> JsonObject:
    return {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": model}


def _stop_reason(turn: MessagesTurn) -> str:
    called = any(block.get("type") == "tool_use" for block in turn.content)
    return turn.stop_reason or ("tool_use" if called else "end_turn")


def _block(place: int, block: JsonObject) -> Iterator[StreamedEvent]:
    start, deltas = _opened(block)
    begun: JsonObject = {"type": "content_block_start", "index": place, "content_block": start}
    yield StreamedEvent("content_block_start", begun)
    for delta in deltas:
        grown: JsonObject = {"type": "content_block_delta", "index": place, "delta": delta}
        yield StreamedEvent("content_block_delta", grown)
    yield StreamedEvent("content_block_stop", {"type": "content_block_stop", "index": place})


def _opened(block: JsonObject) -> tuple[JsonObject, list[JsonObject]]:
    match block.get("type"):
        case "text":
            said = _pieces(as_text(block.get("text")))
            return {**block, "text": ""}, [{"type": "text_delta", "text": p} for p in said]
        case "thinking":
            thought = _pieces(as_text(block.get("thinking")))
            grown: list[JsonObject] = [{"type": "thinking_delta", "thinking": p} for p in thought]
            signed: JsonObject = {"type": "signature_delta", "signature": block.get("signature")}
            return {**block, "thinking": "", "signature": ""}, [*grown, signed]
        case "tool_use" | "server_tool_use":
            arguments = as_object(block.get("input"))
            said = _pieces(orjson.dumps(arguments).decode()) if arguments else []
            return {**block, "input": {}}, [
                {"type": "input_json_delta", "partial_json": p} for p in said
            ]
        case _:
            return block, []


def _pieces(whole: str) -> list[str]:
    return [whole[at : at + _PIECE] for at in range(0, len(whole), _PIECE)]
