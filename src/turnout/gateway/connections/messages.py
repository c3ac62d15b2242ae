"""Connections in the body of a messages request."""

from collections.abc import Mapping, Sequence

from turnout.core.ids import ToolCallId
from turnout.core.json import JsonObject, JsonValue, as_objects, as_text
from turnout.gateway.connections.offer import Offer
from turnout.gateway.connections.weaver import Ran, arguments_of
from turnout.gateway.dialog.conversation import Call, Foreign, Reasoning, Refusal, Text, ToolSpec
from turnout.gateway.dialog.events import AnswerPart, Reply

__all__ = ["MessagesWeaver"]


class MessagesWeaver:
    """A `Weaver` of messages bodies."""

    def declare(self, body: JsonObject, offer: Offer) -> JsonObject:
        """Put tools where toolsets were, and those of servers without a toolset last."""
        tools: list[JsonValue] = []
        left = dict(offer.functions)
        for tool in as_objects(body.get("tools")):
            if tool.get("type") == "mcp_toolset":
                tools += map(_tool, left.pop(as_text(tool.get("mcp_server_name")), ()))
            elif tool.get("type") == "mcp":
                tools += map(_tool, left.pop(as_text(tool.get("server_label")), ()))
            else:
                tools.append(tool)
        for specs in left.values():
            tools += map(_tool, specs)
        rest = {n: value for n, value in body.items() if n not in {"tools", "mcp_servers"}}
        return {**rest, "tools": tools} if tools else rest

    def said(self, reply: Reply, ran: Sequence[Ran]) -> tuple[JsonObject, ...]:
        """Return the assistant's message, and the user's with the results."""
        blocks = [block for part in reply.parts if (block := _block(part)) is not None]
        results: list[JsonValue] = [
            {
                "type": "tool_result",
                "tool_use_id": done.call.id,
                "content": done.text,
                "is_error": done.is_error,
            }
            for done in ran
        ]
        return {"role": "assistant", "content": blocks}, {"role": "user", "content": results}

    def extend(self, body: JsonObject, entries: Sequence[JsonObject]) -> JsonObject:
        """Append messages."""
        return {**body, "messages": [*as_objects(body.get("messages")), *entries]}

    def restore(
        self, body: JsonObject, kept: Mapping[ToolCallId, Sequence[JsonObject]]
    ) -> JsonObject:
        """Put what was kept in place of the assistant messages that came of it.

        All results of one answer stand in one message: the client's join those of the gateway.
        """
        messages: list[JsonObject] = []
        results: JsonObject | None = None
        for message in as_objects(body.get("messages")):
            found = next((kept[i] for i in _calls(message) if i in kept), None)
            if found is not None:
                messages += found[:-1]
                results = found[-1]
            elif results is not None:
                joined = [*as_objects(results.get("content")), *as_objects(message.get("content"))]
                messages.append({**message, "content": joined})
                results = None
            else:
                messages.append(message)
        return {**body, "messages": messages}

    def choose(self, body: JsonObject, choice: str) -> JsonObject:
        """Set the tool choice."""
        return {**body, "tool_choice": {"type": choice}} if "tools" in body else body


def _calls(message: JsonObject) -> list[ToolCallId]:
    blocks = as_objects(message.get("content"))
    return [ToolCallId(as_text(b.get("id"))) for b in blocks if b.get("type") == "tool_use"]


def _tool(spec: ToolSpec) -> JsonObject:
    return {
        "name": spec.name,
        "description": spec.description,
        "input_schema": spec.parameters,
    }


def _block(part: AnswerPart) -> JsonObject | None:
    match part:
        case Text() | Refusal():
            return {"type": "text", "text": part.text} if part.text else None
        case Reasoning(encrypted=encrypted) if encrypted:
            return {"type": "redacted_thinking", "data": encrypted}
        case Reasoning(signature=signature) if signature:
            return {"type": "thinking", "thinking": part.text, "signature": signature}
        case Call():
            given = arguments_of(part)
            return {
                "type": "tool_use",
                "id": part.id,
                "name": part.name,
                "input": {} if given is None else given,
            }
        case Foreign(shape="messages"):
            return part.value
        case _:
            return None
