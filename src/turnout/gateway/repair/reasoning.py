"""Thoughts in the messages of a chat request: given back to their model, kept from all others."""

from collections.abc import Mapping, Sequence

from turnout.core.ids import ToolCallId
from turnout.core.json import JsonObject, JsonValue, as_objects, as_text
from turnout.gateway.catalog import Deployment
from turnout.gateway.dialog.thoughts import Thought

__all__ = ["with_reasoning"]

_FIELDS = frozenset({"reasoning", "reasoning_content", "reasoning_details"})


def with_reasoning(
    messages: JsonValue, thoughts: Mapping[ToolCallId, Thought], deployment: Deployment
) -> JsonValue:
    """Return the messages as a deployment may read them.

    One that does not want thoughts back gets none. One that does gets its own: those that the
    client sends, else those that were kept; what another model thought is left out.
    """
    if not isinstance(messages, list):
        return messages
    mended = [_mended(message, thoughts, deployment) for message in messages]
    changed = any(old is not new for old, new in zip(messages, mended, strict=True))
    return mended if changed else messages


def _mended(
    message: JsonValue, thoughts: Mapping[ToolCallId, Thought], deployment: Deployment
) -> JsonValue:
    if not isinstance(message, dict) or message.get("role") != "assistant":
        return message
    wanted = deployment.reasoning_field
    held = [name for name in message if name in _FIELDS or name == wanted]
    if not deployment.reasoning_back:
        return _without(message, held)
    calls = as_objects(message.get("tool_calls"))
    known = _known(calls, thoughts)
    own = known is None or known.maker == deployment.model
    if own and (message.get(wanted) or "reasoning_details" in held):
        return message
    said = next((as_text(message.get(name)) for name in held if own and message.get(name)), "")
    if own and known is not None and not said:
        said = known.text
    # Servers that want thoughts back refuse a call without the field; an empty one passes.
    return {**_without(message, held), wanted: said} if said or calls else _without(message, held)


def _known(calls: Sequence[JsonObject], thoughts: Mapping[ToolCallId, Thought]) -> Thought | None:
    ids = (ToolCallId(as_text(call.get("id"))) for call in calls)
    return next((thoughts[call] for call in ids if call in thoughts), None)


def _without(message: JsonObject, held: Sequence[str]) -> JsonObject:
    return {name: message[name] for name in message if name not in held} if held else message
