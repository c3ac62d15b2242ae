"""Events of an upstream of the responses shape, and what they come to."""

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from turnout.core.ids import RequestId
from turnout.core.inference import RoutingReport
from turnout.core.usage import Usage
from turnout.gateway.dialog.events import Event
from turnout.gateway.exchange import InferenceRequest, ServerEvent, StreamDelta, StreamEnd
from turnout.gateway.wire.responses import ResponsesShape
from turnout.testing.exchange import deployment

SHAPE = ResponsesShape()
ID = RequestId("req-00112233445566aa")
BY = deployment("p/m")
REPORT = RoutingReport(
    BY.model, BY.provider, BY.id, "cost", "general", "default", None, False, False, 1, "only", None
)
USAGE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 3},
    "total_tokens": 15,
}


def request(**fields: Any) -> InferenceRequest:
    """Return a parsed request."""
    return SHAPE.parse(orjson.dumps({"model": "auto", "input": "Hi", **fields}), {})


def read(*events: dict[str, Any]) -> tuple[list[Event], list[dict[str, Any]]]:
    """Return what the events of an upstream mean, and what our client of the shape gets."""
    reader, writer = SHAPE.reader(request(), BY), SHAPE.writer(request(), ID)
    meant: list[Event] = []
    raw = b""
    for event in events:
        for piece in reader.read(ServerEvent("", event)):
            meant += piece.events
            raw += writer.piece(StreamDelta(piece, BY.model))
    raw += writer.end(StreamEnd(reader.end(), reader.usage or Usage(1, 1), REPORT))
    return meant, parsed(raw)


def parsed(raw: bytes) -> list[dict[str, Any]]:
    """Return the events in server-sent events."""
    return [orjson.loads(line[6:]) for line in raw.split(b"\n") if line.startswith(b"data: ")]


def completed(*items: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return the last event of a stream."""
    response = {"id": "resp_1", "object": "response", "status": "completed", "output": list(items)}
    return {"type": "response.completed", "response": {**response, "usage": USAGE, **fields}}


def added(at: int, item: dict[str, Any]) -> dict[str, Any]:
    """Return the event that opens an item."""
    return {"type": "response.output_item.added", "output_index": at, "item": item}


def done(at: int, item: dict[str, Any]) -> dict[str, Any]:
    """Return the event that closes an item."""
    return {"type": "response.output_item.done", "output_index": at, "item": item}


def types(events: Iterable[dict[str, Any]]) -> Sequence[str]:
    """Return the names of events, without their common start."""
    return [event["type"].removeprefix("response.") for event in events]
