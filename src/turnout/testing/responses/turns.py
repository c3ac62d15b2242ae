"""What a scripted model of the responses API answers: items, whole or as events."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from turnout.core.json import JsonObject, JsonValue, as_objects, as_text
from turnout.core.usage import Usage

__all__ = ["Fault", "ResponsesTurn", "called", "events", "response", "said", "thought"]

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
    "no_completed",
    "no_end",
    "error_in_band",
    "failed",
    "usage_twice",
    "no_usage",
    "oversized",
    "whole",
]
"""How an answer goes wrong.

reset: before a byte. reset_after_headers: after the status line. cut: the connection breaks in the
middle of the last item. stall, stall_midway: silence before a byte, or from there. drip: one byte a
write. html: a page with status 200. content_type: right bytes, declared as `text/plain`. bad_json:
one event, or the body, is no JSON. no_completed: the stream ends cleanly in the middle. no_end: the
answer is whole and the connection stays open. error_in_band: an `error` event in the middle.
failed: `response.failed` there. usage_twice, no_usage. oversized: more than anyone reads.
whole: a stream is answered with one JSON body.
"""

_PIECE = 12
_USAGE = Usage(input_tokens=100, output_tokens=20)


@dataclass(frozen=True, slots=True)
class ResponsesTurn:
    """One answer."""

    items: tuple[JsonObject, ...] = ()
    """Made by `said`, `called` and `thought`, or written out."""
    usage: Usage = _USAGE
    incomplete: str = ""
    """Reason for which the answer is incomplete; empty: it is complete."""
    delay: float = 0.0
    """Seconds before the first byte."""
    pause: float = 0.0
    """Seconds before each later event of a stream."""
    fault: Fault | None = None
    raw: tuple[JsonObject, ...] | None = None
    """The events of a stream, written out."""


def said(text: str) -> JsonObject:
    """Return a message."""
    part: JsonObject = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "message", "role": "assistant", "status": "completed", "content": [part]}


def called(name: str, arguments: str, call_id: str) -> JsonObject:
    """Return a function call."""
    call: JsonObject = {"type": "function_call", "call_id": call_id, "name": name}
    return {**call, "arguments": arguments, "status": "completed"}


def thought(summary: str, encrypted: str = "") -> JsonObject:
    """Return a thought, with its encrypted form where one is given."""
    part: JsonObject = {"type": "summary_text", "text": summary}
    item: JsonObject = {"type": "reasoning", "summary": [part]}
    return {**item, "encrypted_content": encrypted} if encrypted else item


def response(turn: ResponsesTurn, model: str, number: int) -> dict[str, JsonValue]:
    """Return the turn as a response object."""
    whole: dict[str, JsonValue] = {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "incomplete" if turn.incomplete else "completed",
        "error": None,
        "incomplete_details": {"reason": turn.incomplete} if turn.incomplete else None,
        "model": model,
        "output": [_named(item, number, at) for at, item in enumerate(turn.items)],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "novelty": "kept",
    }
    if turn.fault != "no_usage":
        whole["usage"] = _usage(turn.usage)
    return whole


def events(turn: ResponsesTurn, model: str, number: int) -> Iterator[JsonObject]:
    """Yield the turn as the events of a stream."""
    if turn.raw is not None:
        yield from turn.raw
        return
    whole = response(turn, model, number)
    begun: JsonObject = {**whole, "status": "in_progress", "output": [], "usage": None}
    told: list[JsonObject] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    for at, item in enumerate(as_objects(whole["output"])):
        told += _item(item, at)
    for _ in range(2 if turn.fault == "usage_twice" else 1):
        told.append({"type": f"response.{whole['status']}", "response": whole})
    for place, event in enumerate(told):
        yield {**event, "sequence_number": place}


def _item(item: JsonObject, at: int) -> Iterator[dict[str, JsonValue]]:
    place: JsonObject = {"output_index": at, "item_id": item["id"]}
    empty = {"message": "content", "reasoning": "summary", "function_call": "arguments"}
    name = empty.get(as_text(item["type"]), "")
    begun: dict[str, JsonValue] = {**item, "status": "in_progress"}
    if name:
        begun[name] = "" if name == "arguments" else []
    yield {"type": "response.output_item.added", "output_index": at, "item": begun}
    match item["type"]:
        case "message":
            for index, part in enumerate(as_objects(item["content"])):
                yield from _text(place, "output_text", "content_part", part, index)
        case "reasoning":
            for index, part in enumerate(as_objects(item["summary"])):
                names = ("reasoning_summary_text", "reasoning_summary_part")
                yield from _text(place, *names, part, index)
        case "function_call":
            stem = "response.function_call_arguments"
            for piece in _pieces(as_text(item["arguments"])):
                yield {"type": f"{stem}.delta", **place, "delta": piece}
            yield {"type": f"{stem}.done", **place, "arguments": item["arguments"]}
        case _:
            pass
    yield {"type": "response.output_item.done", "output_index": at, "item": item}


def _text(
    place: JsonObject, stem: str, around: str, part: JsonObject, index: int
) -> Iterator[dict[str, JsonValue]]:
    number = "summary_index" if around.startswith("reasoning") else "content_index"
    at: JsonObject = {**place, number: index}
    text = as_text(part["text"])
    yield {"type": f"response.{around}.added", **at, "part": {**part, "text": ""}}
    for piece in _pieces(text):
        yield {"type": f"response.{stem}.delta", **at, "delta": piece, "logprobs": []}
    yield {"type": f"response.{stem}.done", **at, "text": text, "logprobs": []}
    yield {"type": f"response.{around}.done", **at, "part": part}


def _named(item: JsonObject, number: int, at: int) -> JsonObject:
    prefixes = {"message": "msg", "reasoning": "rs", "function_call": "fc"}
    prefix = prefixes.get(as_text(item["type"]), "item")
    return {"id": f"{prefix}_up{number}x{at}", **item}


def _usage(usage: Usage) -> JsonObject:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read_input_tokens,
            "cache_write_tokens": usage.cache_creation_input_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 7},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), _PIECE):
        yield text[start : start + _PIECE]
