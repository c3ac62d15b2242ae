"""Marks up to which a provider of the chat shape is to cache a prompt."""

from collections.abc import Sequence

from turnout.core.json import JsonObject, JsonValue, as_objects

__all__ = ["with_marks"]

_MARK: JsonObject = {"cache_control": {"type": "ephemeral"}}


def with_marks(messages: JsonValue) -> JsonValue:
    """Return the messages with a mark after the instructions and one at the end.

    A client that sets marks of its own knows better: its messages stay as they are.
    """
    said = as_objects(messages)
    if any("cache_control" in part for message in said for part in _parts(message)):
        return messages
    places = [at for at, m in enumerate(said) if m.get("role") in ("system", "developer")][-1:]
    if said and len(said) - 1 not in places:
        places.append(len(said) - 1)
    return [_marked(message) if at in places else message for at, message in enumerate(said)]


def _parts(message: JsonObject) -> Sequence[JsonObject]:
    return as_objects(message.get("content"))


def _marked(message: JsonObject) -> JsonObject:
    content = message.get("content")
    if isinstance(content, str) and content:
        return {**message, "content": [{"type": "text", "text": content, **_MARK}]}
    parts = _parts(message)
    if not parts or parts[-1].get("type") != "text":
        return message
    return {**message, "content": [*parts[:-1], {**parts[-1], **_MARK}]}
