"""Connections in the body of a chat completions request."""

from collections.abc import Mapping, Sequence

from turnout.core.ids import ToolCallId
from turnout.core.json import JsonObject, JsonValue, as_object, as_objects, as_text
from turnout.gateway.connections.offer import Offer, Place
from turnout.gateway.connections.weaver import Ran
from turnout.gateway.dialog.conversation import Call, ToolSpec
from turnout.gateway.dialog.events import Reply

__all__ = ["ChatWeaver"]


class ChatWeaver:
    """A `Weaver` of chat bodies."""

    def declare(self, body: JsonObject, offer: Offer) -> JsonObject:
        """Put functions where connections were named, and where one was to be chosen."""
        tools: list[JsonValue] = []
        left = dict(offer.functions)
        for tool in as_objects(body.get("tools")):
            if tool.get("type") == "mcp":
                tools += map(_function, left.pop(_name(tool), ()))
            else:
                tools.append(tool)
        rest = {name: value for name, value in body.items() if name != "tools"}
        woven = {**rest, "tools": tools} if tools else rest
        choice = as_object(body.get("tool_choice"))
        if choice.get("type") != "mcp":
            return woven
        named_tool = as_text(as_object(choice.get("mcp")).get("name") or choice.get("name"))
        place = Place(_name(choice), named_tool)
        if not named_tool or offer.name_of(place) not in offer.places:
            return {**woven, "tool_choice": "required"}
        named: JsonObject = {"type": "function", "function": {"name": offer.name_of(place)}}
        return {**woven, "tool_choice": named}

    def said(self, reply: Reply, ran: Sequence[Ran]) -> tuple[JsonObject, ...]:
        """Return the assistant's message and one message for each result."""
        message: JsonObject = {
            "role": "assistant",
            "content": reply.text or None,
            "tool_calls": [_call(call) for call in reply.calls],
        }
        results: list[JsonObject] = [
            {
                "role": "tool",
                "tool_call_id": done.call.id,
                "content": f"Error: {done.text}" if done.is_error else done.text,
            }
            for done in ran
        ]
        return (message, *results)

    def extend(self, body: JsonObject, entries: Sequence[JsonObject]) -> JsonObject:
        """Append messages."""
        return {**body, "messages": [*as_objects(body.get("messages")), *entries]}

    def restore(
        self, body: JsonObject, kept: Mapping[ToolCallId, Sequence[JsonObject]]
    ) -> JsonObject:
        """Put what was kept in place of the assistant messages that came of it."""
        messages: list[JsonValue] = []
        for message in as_objects(body.get("messages")):
            calls = as_objects(message.get("tool_calls"))
            ids = [ToolCallId(as_text(call.get("id"))) for call in calls]
            messages += next((kept[i] for i in ids if i in kept), (message,))
        return {**body, "messages": messages}

    def choose(self, body: JsonObject, choice: str) -> JsonObject:
        """Set the tool choice."""
        return {**body, "tool_choice": choice} if "tools" in body else body


def _name(entry: JsonObject) -> str:
    nested = as_object(entry.get("mcp")) or entry
    return as_text(nested.get("server_label") or nested.get("server"))


def _function(spec: ToolSpec) -> JsonObject:
    function: JsonObject = {
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters,
    }
    return {"type": "function", "function": function}


def _call(call: Call) -> JsonObject:
    if call.type == "custom":
        return {
            "id": call.id,
            "type": "custom",
            "custom": {"name": call.name, "input": call.arguments},
        }
    function: JsonObject = {"name": call.name, "arguments": call.arguments or "{}"}
    return {"id": call.id, "type": "function", "function": function}
