"""Cache marks: up to where a prompt is worth keeping."""

from collections.abc import Iterator, Mapping

from turnout.core.json import JsonObject, JsonValue, as_objects
from turnout.gateway.wire.messages.content.blocks import CACHE_MARK

__all__ = ["with_marks"]

_UNMARKED = frozenset({"redacted_thinking", "thinking"})
"""Blocks that take no mark."""


def with_marks(body: JsonObject, *, keep_system: bool) -> JsonObject:
    """Return a body with marks where it has none of its own.

    They stand after the standing instructions, after what the request before this one ended
    with, and at the end: so each request reads what the last one wrote. `keep_system`: a list of
    instructions stays byte for byte as the client sent it; the tools are marked in its place.
    """
    if any("cache_control" in block for block in _markable(body)) or "cache_control" in body:
        return body
    marked: dict[str, JsonValue] = dict(body)
    system = body.get("system")
    if isinstance(system, str) and system:
        marked["system"] = [{"type": "text", "text": system, "cache_control": CACHE_MARK}]
    elif system and not keep_system:
        marked["system"] = _marked_list(as_objects(system))
    elif tools := as_objects(body.get("tools")):
        marked["tools"] = _marked_list(tools)
    messages: list[JsonValue] = list(as_objects(body.get("messages")))
    for place in _ends(as_objects(body.get("messages"))):
        message = messages[place]
        if isinstance(message, Mapping):
            messages[place] = _marked_message(message)
    marked["messages"] = messages
    return marked


def _markable(body: JsonObject) -> Iterator[JsonObject]:
    yield from as_objects(body.get("system"))
    yield from as_objects(body.get("tools"))
    for message in as_objects(body.get("messages")):
        for block in as_objects(message.get("content")):
            yield block
            yield from as_objects(block.get("content"))


def _ends(messages: list[JsonObject]) -> Iterator[int]:
    """Yield the places of the last message, and of the last one before the last answer."""
    if not messages:
        return
    last = len(messages) - 1
    answer = next((at for at in range(last, 0, -1) if _role(messages, at) == "assistant"), None)
    if answer is not None and answer - 1 != last:
        yield answer - 1
    yield last


def _role(messages: list[JsonObject], at: int) -> JsonValue:
    return messages[at].get("role")


def _marked_message(message: JsonObject) -> JsonObject:
    content = message.get("content")
    if isinstance(content, str):
        blocks: list[JsonObject] = [{"type": "text", "text": content}] if content else []
    else:
        blocks = as_objects(content)
    if not blocks or blocks[-1].get("type") in _UNMARKED:
        return message
    return {**message, "content": _marked_list(blocks)}


def _marked_list(blocks: list[JsonObject]) -> list[JsonValue]:
    return [*blocks[:-1], {**blocks[-1], "cache_control": CACHE_MARK}]
