"""Small views of an answer in the chat shape."""

from collections.abc import Sequence
from dataclasses import replace

from turnout.core.ids import ToolCallId
from turnout.core.json import JsonObject, JsonValue, as_object, as_objects, as_text
from turnout.core.usage import Usage
from turnout.gateway.exchange import InferenceRequest
from turnout.gateway.stages.call_table import StreamedCall

__all__ = ["as_chunk", "calls_of", "estimate_usage", "first_message", "not_streamed"]

_CHARS_PER_TOKEN = 4
_STREAM_FIELDS = frozenset({"stream", "stream_options"})


def calls_of(body: JsonObject) -> Sequence[StreamedCall]:
    """Return the tool calls of a whole answer, every choice's."""
    return [
        StreamedCall(
            ToolCallId(as_text(call.get("id"))),
            as_text(as_object(call.get("function")).get("name")),
            as_text(as_object(call.get("function")).get("arguments")),
        )
        for choice in as_objects(body.get("choices"))
        for call in as_objects(as_object(choice.get("message")).get("tool_calls"))
    ]


def first_message(body: JsonObject) -> JsonObject:
    """Return the message of a whole answer's first choice."""
    choices = as_objects(body.get("choices"))
    return as_object(choices[0].get("message")) if choices else {}


def estimate_usage(request: InferenceRequest, body: JsonObject) -> Usage:
    """Return what an answer without counts used, by the length of its texts and its calls."""
    said = [as_object(choice.get("message")) for choice in as_objects(body.get("choices"))]
    size = sum(len(text) for message in said for text in message.values() if isinstance(text, str))
    size += sum(len(call.name) + len(call.arguments) for call in calls_of(body))
    return Usage(request.input_tokens_estimate, -(-size // _CHARS_PER_TOKEN), estimated=True)


def not_streamed(request: InferenceRequest) -> InferenceRequest:
    """Return the same request, to be answered whole."""
    body = {name: value for name, value in request.body.items() if name not in _STREAM_FIELDS}
    return replace(request, stream=False, include_usage=False, body=body)


def as_chunk(body: JsonObject) -> JsonObject:
    """Return a whole answer as the one chunk of a stream."""
    choices: list[JsonValue] = [
        {
            "index": choice.get("index", place),
            "delta": choice.get("message"),
            "finish_reason": choice.get("finish_reason"),
        }
        for place, choice in enumerate(as_objects(body.get("choices")))
    ]
    return {**body, "choices": choices}
