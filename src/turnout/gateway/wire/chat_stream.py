"""A streamed chat completions answer as server-sent events."""

import orjson

from turnout.core.ids import RequestId
from turnout.core.json import JsonObject, JsonValue
from turnout.errors import TurnoutError
from turnout.gateway.exchange import StreamDelta, StreamEnd, UpstreamError
from turnout.gateway.wire.chat_usage import write_usage
from turnout.gateway.wire.errors import write_error
from turnout.gateway.wire.report import write_report

__all__ = ["KEEP_ALIVE", "delta_event", "end_events", "error_event"]

KEEP_ALIVE = b": keep-alive\n\n"
"""A comment that clients skip, for connections that close when nothing moves."""

_DONE = b"data: [DONE]\n\n"


def delta_event(delta: StreamDelta, request_id: RequestId) -> bytes:
    """Return the event of one piece of the answer."""
    return _event({**delta.chunk, "id": request_id, "object": "chat.completion.chunk"})


def end_events(end: StreamEnd, request_id: RequestId, *, include_usage: bool) -> bytes:
    """Return the last events: the finish reasons with the `routing` report, usage if asked."""
    envelope: dict[str, JsonValue] = {
        **end.chunk,
        "id": request_id,
        "object": "chat.completion.chunk",
    }
    events = _event({**envelope, "routing": write_report(end.report)})
    if include_usage:
        usage = end.usage_body or write_usage(end.usage)
        events += _event({**envelope, "choices": [], "usage": usage})
    return events + _DONE


def error_event(error: TurnoutError | UpstreamError) -> bytes:
    """Return the event of an error after the stream began; no `[DONE]` follows it."""
    lines = write_error(error).body.splitlines()
    return b"".join(b"data: " + line + b"\n" for line in lines) + b"\n"


def _event(chunk: JsonObject) -> bytes:
    return b"data: " + orjson.dumps(chunk) + b"\n\n"
