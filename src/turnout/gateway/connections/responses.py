"""Connections in the body of a responses request."""

from collections.abc import Iterator, Mapping, Sequence

from turnout.core.ids import ToolCallId
from turnout.core.json import JsonObject, JsonValue, as_object, as_objects, as_text
from turnout.gateway.connections.offer import Offer, Place
from turnout.gateway.connections.weaver import Ran
from turnout.gateway.dialog.conversation import Call, Foreign, Reasoning, Refusal, Text, ToolSpec
from turnout.gateway.dialog.events import AnswerPart, Reply

__all__ = ["ResponsesWeaver", "call_item"]

_CALLS = frozenset({"function_call", "custom_tool_call"})
_DROPPED = frozenset({"mcp_list_tools", "mcp_approval_request", "mcp_approval_response"})


class ResponsesWeaver:
    """A `Weaver` of responses bodies."""

    def declare(self, body: JsonObject, offer: Offer) -> JsonObject:
        """Put functions where connections were named, and calls where they had been used."""
        tools: list[JsonValue] = []
        left = dict(offer.functions)
        for tool in as_objects(body.get("tools")):
            if tool.get("type") == "mcp":
                tools += map(_function, left.pop(as_text(tool.get("server_label")), ()))
            else:
                tools.append(tool)
        rest = {name: value for name, value in body.items() if name != "tools"}
        woven = {**rest, "tools": tools} if tools else rest
        if isinstance(body.get("input"), list):
            items = as_objects(body.get("input"))
            woven = {**woven, "input": [i for item in items for i in _plain(item, offer)]}
        choice = as_object(body.get("tool_choice"))
        if choice.get("type") != "mcp":
            return woven
        place = Place(as_text(choice.get("server_label")), as_text(choice.get("name")))
        if not place.tool or offer.name_of(place) not in offer.places:
            return {**woven, "tool_choice": "required"}
        return {**woven, "tool_choice": {"type": "function", "name": offer.name_of(place)}}

    def said(self, reply: Reply, ran: Sequence[Ran]) -> tuple[JsonObject, ...]:
        """Return the items of an answer, and one for each result."""
        items = [item for part in reply.parts if (item := _item(part)) is not None]
        return (*items, *(_output(done.call.id, done.text, is_error=done.is_error) for done in ran))

    def extend(self, body: JsonObject, entries: Sequence[JsonObject]) -> JsonObject:
        """Append items."""
        given = body.get("input")
        before: list[JsonObject] = (
            [{"role": "user", "content": given}] if isinstance(given, str) else as_objects(given)
        )
        return {**body, "input": [*before, *entries]}

    def restore(
        self, body: JsonObject, kept: Mapping[ToolCallId, Sequence[JsonObject]]
    ) -> JsonObject:
        """Put what was kept in place of the answers that came of it.

        A conversation that holds `mcp_call` items lacks nothing.
        """
        items = as_objects(body.get("input"))
        if not kept or any(item.get("type") == "mcp_call" for item in items):
            return body
        woven: list[JsonObject] = []
        there: set[str] = set()
        for item in items:
            call = ToolCallId(as_text(item.get("call_id")))
            if item.get("type") not in _CALLS or not (call in kept or call in there):
                woven.append(item)
            elif call not in there:
                while woven and _is_answer(woven[-1]):
                    woven.pop()
                woven += kept[call]
                there |= {as_text(entry.get("call_id")) for entry in kept[call]}
        return {**body, "input": woven}

    def choose(self, body: JsonObject, choice: str) -> JsonObject:
        """Set the tool choice."""
        return {**body, "tool_choice": choice} if "tools" in body else body


def call_item(ran: Ran, item_id: str) -> JsonObject:
    """Return a call that was run as the item that shows it to the client."""
    return {
        "type": "mcp_call",
        "id": item_id,
        "server_label": ran.place.connection,
        "name": ran.place.tool,
        "arguments": ran.call.arguments,
        "output": None if ran.is_error else ran.text,
        "error": ran.text if ran.is_error else None,
        "status": "failed" if ran.is_error else "completed",
        "approval_request_id": None,
    }


def _plain(item: JsonObject, offer: Offer) -> Iterator[JsonObject]:
    """Yield what stands in the conversation for an item that a client gives back."""
    kind = item.get("type")
    if kind in _DROPPED:
        return
    if kind != "mcp_call":
        yield item
        return
    place = Place(as_text(item.get("server_label")), as_text(item.get("name")))
    failed = as_text(item.get("error"))
    call, name = ToolCallId(as_text(item.get("id"))), offer.name_of(place)
    yield _call(Call(call, name, as_text(item.get("arguments"))))
    yield _output(call, failed or as_text(item.get("output")), is_error=bool(failed))


def _is_answer(item: JsonObject) -> bool:
    return item.get("type") == "reasoning" or item.get("role") == "assistant"


def _function(spec: ToolSpec) -> JsonObject:
    return {
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters,
        # Unsaid, it would be true, and the schemas of strangers are seldom fit for that.
        "strict": False,
    }


def _item(part: AnswerPart) -> JsonObject | None:
    match part:
        case Text() | Refusal():
            if not part.text:
                return None
            said: JsonObject = {"type": "output_text", "text": part.text, "annotations": []}
            return {"type": "message", "role": "assistant", "content": [said]}
        case Reasoning(encrypted=encrypted) if encrypted:
            return {"type": "reasoning", "summary": [], "encrypted_content": encrypted}
        case Call(type="custom"):
            return {
                "type": "custom_tool_call",
                "call_id": part.id,
                "name": part.name,
                "input": part.arguments,
            }
        case Call():
            return _call(part)
        case Foreign(shape="responses"):
            return part.value
        case _:
            return None


def _call(call: Call) -> JsonObject:
    return {
        "type": "function_call",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments or "{}",
    }


def _output(call: ToolCallId, text: str, *, is_error: bool) -> JsonObject:
    said = f"Error: {text}" if is_error else text
    return {"type": "function_call_output", "call_id": call, "output": said}
