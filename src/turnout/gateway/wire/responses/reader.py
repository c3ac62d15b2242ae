"""An upstream's answer of the responses shape, understood: streamed or whole."""

from collections.abc import Iterable, Iterator
from secrets import token_hex

from turnout.core.ids import new_tool_call_id
from turnout.core.json import JsonObject, JsonValue, as_object, as_objects, as_text
from turnout.core.usage import Usage
from turnout.gateway.catalog import Deployment
from turnout.gateway.dialog.conversation import Call, Text
from turnout.gateway.dialog.events import Ending, Native, Piece, Reply
from turnout.gateway.exchange import InferenceRequest, ServerEvent, UpstreamError
from turnout.gateway.providers.failures import in_band
from turnout.gateway.repair import needs_whole_reply
from turnout.gateway.repair.text_calls import find_calls
from turnout.gateway.wire.base import ReadReply
from turnout.gateway.wire.responses.answer import (
    call_item,
    content_part,
    mended_item,
    parts_of,
    read_finish,
    read_usage,
)
from turnout.gateway.wire.responses.items import CALLS, kind
from turnout.gateway.wire.responses.seal import sealed_item
from turnout.gateway.wire.responses.tracking import FIELDS, Output

__all__ = ["ENDS", "ResponsesReader", "read_whole"]

ENDS = frozenset(
    {"response.completed", "response.incomplete", "response.failed", "response.cancelled", "error"}
)
"""Events after which nothing follows."""

_BEGINS = frozenset({"response.created", "response.in_progress", "response.queued"})
_FAILED = frozenset({"failed", "cancelled"})


class ResponsesReader:
    """Reads one stream of the responses shape."""

    def __init__(self, deployment: Deployment) -> None:
        self._output = Output(deployment)
        self._last: JsonObject | None = None
        """The response object with which the stream ended."""
        self._usage_body: JsonObject | None = None

    @property
    def usage(self) -> Usage | None:
        """The counts so far; None where the upstream sent none."""
        return read_usage(self._usage_body)

    @property
    def repairs(self) -> tuple[str, ...]:
        """What was mended in the calls so far."""
        return tuple(self._output.mends)

    def read(self, event: ServerEvent) -> Iterable[Piece]:
        """Take an event in and return what the client may see of it."""
        data, name = event.data, as_text(event.data.get("type")) or event.name
        if not name and ("output" in data or data.get("object") == "response"):
            name, data = "response.completed", {"response": data}
        if name == "error" or (not name and data.get("error")):
            raise _error(data)
        # Some servers send events of their own, which no client of this shape knows.
        if not name.startswith("response.") or self._last is not None:
            return ()
        return list(self._take(name, {**data, "type": name}))

    def end(self) -> Ending:
        """Return how the answer ends; `UpstreamError` where the upstream stopped before that."""
        last = self._last
        if last is None:
            raise UpstreamError("ended the stream before the answer was finished", status=None)
        reply = self.so_far()
        named = "incomplete" if last.get("status") == "incomplete" else "completed"
        closing: JsonObject = {
            "type": f"response.{named}",
            "response": {**last, "status": named, "output": self._output.items(), "usage": None},
        }
        return Ending(
            reply.finish,
            natives=(Native("responses", closing, f"response.{named}"),),
            usage_native=self._usage_body,
        )

    def so_far(self) -> Reply:
        """Return the answer so far, or whole."""
        parts = tuple(self._output.parts())
        called = any(isinstance(part, Call) for part in parts)
        finish = read_finish(self._last or {}, called=called)
        origin = None
        if self._last is not None:
            origin = Native("responses", {**self._last, "output": self._output.items()})
        return Reply(parts, finish, self.usage, origin=origin)

    def _take(self, name: str, data: JsonObject) -> Iterator[Piece]:
        stem, _, verb = name.rpartition(".")
        if name in _BEGINS:
            yield Piece(native=Native("responses", _nested(data), name))
        elif name in ENDS:
            yield from self._finish(_nested(data), name)
        elif name == "response.output_item.added":
            yield from self._output.opened(data)
        elif name == "response.output_item.done":
            yield from self._output.closed(data)
        elif stem in FIELDS and verb == "delta":
            yield from self._output.piece(data, stem)
        elif stem in FIELDS and verb == "done":
            yield from self._output.whole(data, stem)
        elif "item_id" in data or "output_index" in data:
            yield from self._output.part(data)
        else:
            yield Piece(native=Native("responses", data, name))

    def _finish(self, data: JsonObject, name: str) -> Iterator[Piece]:
        response = as_object(data.get("response"))
        self._usage_body = as_object(response.get("usage")) or None
        if name in {"response.failed", "response.cancelled"} or response.get("error"):
            raise _failed(response)
        yield from self._output.finish(response)
        status = "incomplete" if name == "response.incomplete" else response.get("status")
        self._last = {**response, "status": status}


def read_whole(body: JsonObject, request: InferenceRequest, deployment: Deployment) -> ReadReply:
    """Return a whole answer; `UpstreamError` where it is none."""
    if body.get("error") or as_text(body.get("status")) in _FAILED:
        raise _failed(body)
    output = body.get("output")
    if not isinstance(output, list):
        raise UpstreamError("sent an answer without output", status=None)
    mends: dict[str, None] = {}
    seen: set[str] = set()
    items = [_mended(item, deployment, mends, seen) for item in as_objects(output)]
    if request.tools and request.tool_choice != "none":
        items = _with_text_calls(items, request, deployment, mends)
    parts = tuple(part for item in items for part in parts_of(item))
    called = any(isinstance(part, Call) for part in parts)
    whole: list[JsonValue] = list(items)
    native = Native("responses", {**body, "output": whole})
    finish, usage = read_finish(body, called=called), read_usage(body.get("usage"))
    return ReadReply(Reply(parts, finish, usage, origin=native), native, tuple(mends))


def _mended(
    item: JsonObject, deployment: Deployment, mends: dict[str, None], seen: set[str]
) -> JsonObject:
    """Return an item as clients count on it; `seen`: ids of the calls before it."""
    if kind(item) == "reasoning":
        return sealed_item(item, deployment)
    if kind(item) not in CALLS:
        return item
    mended = mended_item(item)
    if mended is not item:
        mends["a call's id or arguments mended"] = None
    if mended["call_id"] in seen:
        mends["duplicate call id replaced"] = None
        mended = {**mended, "call_id": new_tool_call_id()}
    seen.add(as_text(mended["call_id"]))
    return mended


def _with_text_calls(
    items: list[JsonObject],
    request: InferenceRequest,
    deployment: Deployment,
    mends: dict[str, None],
) -> list[JsonObject]:
    """Return the items with calls that the server left in the text as calls."""
    if any(kind(i) in CALLS for i in items) or not needs_whole_reply(request, deployment):
        return items
    declared = {
        as_text(tool.get("name")): as_object(tool.get("parameters"))
        for tool in as_objects(request.body.get("tools"))
        if tool.get("type") == "function"
    }
    mended: list[JsonObject] = []
    for item in items:
        text = "".join(part.text for part in parts_of(item) if isinstance(part, Text))
        found = find_calls(text, declared)
        if kind(item) != "message" or not found.calls:
            mended.append(item)
            continue
        mends["calls read from the text"] = None
        if found.rest:
            mended.append({**item, "content": [content_part(Text(found.rest))]})
        for call in found.calls:
            made = Call(new_tool_call_id(), call.name, call.arguments)
            named: JsonObject = {"id": f"fc_{token_hex(12)}", "status": "completed"}
            mended.append({**named, **call_item(made, {})})
    return mended


def _nested(data: JsonObject) -> JsonObject:
    """Return a lifecycle event with its response where the API has it."""
    if isinstance(data.get("response"), dict):
        return data
    response = {k: v for k, v in data.items() if k not in {"type", "sequence_number"}}
    return {"type": data["type"], "response": response}


def _error(data: JsonObject) -> UpstreamError:
    """Return the error of an event: its fields stand in the event itself, or in `error`."""
    detail = as_object(data.get("error")) or {
        name: data.get(name) for name in ("code", "message", "param")
    }
    return in_band({"error": detail}, "responses")


def _failed(response: JsonObject) -> UpstreamError:
    detail = as_object(response.get("error"))
    if not detail:
        detail = {"message": f"the response is {as_text(response.get('status')) or 'broken'}"}
    return in_band({"error": detail}, "responses")
