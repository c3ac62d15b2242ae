"""What a scripted model answers: turns, and the wire shapes they take."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from turnout.core.json import JsonObject, JsonValue
from turnout.core.usage import Usage

__all__ = ["Call", "Fault", "Refusal", "Turn", "completion", "dump", "stream_chunks"]

Fault = Literal[
    "reset",
    "reset_after_headers",
    "cut",
    "stall",
    "stall_midway",
    "drip",
    "html",
    "content_type",
    "bad_json",
    "no_done",
    "no_end",
    "oversized",
    "error_in_band",
    "usage_twice",
    "no_usage",
    "no_index",
    "zero_index",
    "call_in_text",
]
"""How an answer goes wrong.

reset: the connection is reset before a byte. reset_after_headers: after the status line.
cut: the body ends in the middle, before the last piece of the text or of a call's arguments.
stall, stall_midway: silence before a byte, or after the first half. drip: one byte a write.
html: a page with status 200. content_type: right bytes, declared as `text/plain`.
bad_json: one line, or the whole body, is no JSON. no_done: the stream ends without `[DONE]`.
no_end: the answer is whole and the connection stays open. oversized: more than anyone reads.
error_in_band: an error object after the first half of the stream. usage_twice, no_usage.
no_index, zero_index: call fragments without an index, or all with index 0.
call_in_text: calls are printed in the text between `<tool_call>` marks.
"""

_PIECE = 12
_USAGE = Usage(input_tokens=100, output_tokens=20)


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call as the scripted model makes it."""

    name: str
    arguments: JsonObject | str = field(default_factory=dict)
    """A string is sent as it is, however broken."""
    id: str | None = None
    """None: `call_REQUEST_PLACE`, unique within the server's life."""

    def text(self) -> str:
        """Return the arguments as the wire carries them."""
        if isinstance(self.arguments, str):
            return self.arguments
        return dump(self.arguments)


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer of the scripted model."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: str = ""
    usage: Usage = _USAGE
    finish_reason: str | None = None
    """None: `tool_calls` where there are calls, else `stop`."""
    delay: float = 0.0
    """Seconds before the first byte."""
    until: asyncio.Event | None = None
    """What is waited for before that; None: nothing."""
    pause: float = 0.0
    """Seconds before each later chunk of a stream."""
    fault: Fault | None = None
    doubts: tuple[tuple[str, str, float], ...] = ()
    """Other ways to go on, told as log probabilities: before which words of the text, with which
    token, how likely."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer with an error status."""

    status: int
    message: str = "refused by script"
    code: str = "scripted"
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    """Sent in place of the JSON error object."""

    def payload(self) -> bytes:
        """Return the body."""
        if self.raw is not None:
            return self.raw
        error = {"message": self.message, "type": "scripted_error", "code": self.code}
        return dump({"error": error}).encode()


def dump(value: JsonValue) -> str:
    """Return `value` as JSON, characters beyond ASCII kept as they are."""
    return json.dumps(value, ensure_ascii=False)


def completion(turn: Turn, model: str, number: int) -> JsonObject:
    """Return the turn as a body of `chat.completion`."""
    message: dict[str, JsonValue] = {"role": "assistant", "content": _content(turn) or None}
    if turn.reasoning:
        message["reasoning_content"] = turn.reasoning
    if _native_calls(turn):
        message["tool_calls"] = [_call(call, number, at) for at, call in enumerate(turn.calls)]
    body: dict[str, JsonValue] = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": _finish(turn),
                **({"logprobs": _logprobs(turn)} if turn.doubts else {}),
            }
        ],
    }
    if turn.fault != "no_usage":
        body["usage"] = _usage(turn.usage)
    return body


def stream_chunks(turn: Turn, model: str, number: int, *, usage: bool) -> Iterator[JsonObject]:
    """Yield the turn as chunks, the usage chunk last where it was asked for."""

    def chunk(choices: list[JsonValue], **more: JsonValue) -> JsonObject:
        head: JsonObject = {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion.chunk",
            "created": 1_700_000_000,
            "model": model,
        }
        return {**head, "choices": choices, **more}

    def delta(part: JsonObject, finish: str | None = None) -> JsonObject:
        return chunk([{"index": 0, "delta": part, "finish_reason": finish}])

    yield delta({"role": "assistant", "content": ""})
    for piece in _pieces(turn.reasoning):
        yield delta({"reasoning_content": piece})
    for piece in _pieces(_content(turn)):
        yield delta({"content": piece})
    for at, call in enumerate(turn.calls if _native_calls(turn) else ()):
        opened = _call(call, number, at) | {"function": {"name": call.name, "arguments": ""}}
        yield delta({"tool_calls": [_indexed(opened, at, turn.fault)]})
        for piece in _pieces(call.text()):
            fragment: JsonObject = {"function": {"arguments": piece}}
            yield delta({"tool_calls": [_indexed(fragment, at, turn.fault)]})
    yield delta({}, _finish(turn))
    if turn.fault != "no_usage" and (usage or turn.fault == "usage_twice"):
        for _ in range(2 if turn.fault == "usage_twice" else 1):
            yield chunk([], usage=_usage(turn.usage))


def _logprobs(turn: Turn) -> JsonObject:
    """Return the text in tokens that begin where there is a doubt."""
    text = _content(turn)
    doubts = {text.index(before): (other, likely) for before, other, likely in turn.doubts}
    starts = sorted({0, *doubts})
    tokens: list[JsonValue] = []
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        top: list[JsonValue] = [{"token": text[start:end], "logprob": -0.1}]
        if start in doubts:
            other, likely = doubts[start]
            top.append({"token": other, "logprob": likely})
        tokens.append({"token": text[start:end], "logprob": -0.1, "top_logprobs": top})
    return {"content": tokens}


def _native_calls(turn: Turn) -> bool:
    return bool(turn.calls) and turn.fault != "call_in_text"


def _finish(turn: Turn) -> str:
    return turn.finish_reason or ("tool_calls" if _native_calls(turn) else "stop")


def _content(turn: Turn) -> str:
    if turn.fault != "call_in_text":
        return turn.text
    printed = (
        f'<tool_call>\n{{"name": {dump(call.name)}, "arguments": {call.text()}}}\n</tool_call>'
        for call in turn.calls
    )
    return "\n".join([turn.text, *printed] if turn.text else printed)


def _call(call: Call, number: int, at: int) -> dict[str, JsonValue]:
    return {
        "id": f"call_{number}_{at}" if call.id is None else call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.text()},
    }


def _indexed(fragment: JsonObject, at: int, fault: Fault | None) -> JsonObject:
    if fault == "no_index":
        return fragment
    return {"index": 0 if fault == "zero_index" else at, **fragment}


def _usage(usage: Usage) -> JsonObject:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_input_tokens},
    }


def _pieces(text: str) -> Iterator[str]:
    for at in range(0, len(text), _PIECE):
        yield text[at : at + _PIECE]
