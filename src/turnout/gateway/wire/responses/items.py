"""The input items of a request: their forms, and which call each result answers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from turnout.core.ids import ToolCallId
from turnout.core.json import JsonObject, JsonValue, as_objects, as_text
from turnout.gateway.wire.fields import invalid, items, text
from turnout.gateway.wire.responses.client_tools import BY_CALL, BY_OUTPUT

__all__ = [
    "CALLS",
    "OUTPUTS",
    "Survey",
    "call_id",
    "check_pairs",
    "input_items",
    "kind",
    "survey",
]

CALLS: Mapping[str, str] = {"function_call": "arguments", "custom_tool_call": "input"}
"""Items that call a tool by its name, and the field of the arguments."""
OUTPUTS: Mapping[str, str] = {
    "function_call_output": "function_call",
    "custom_tool_call_output": "custom_tool_call",
    **{tool.output: tool.call for tool in BY_OUTPUT.values()},
}
"""Items that answer a call, and the type of that call."""

_ROLES = frozenset({"assistant", "developer", "system", "user"})
_ATTACHED: Mapping[str, str] = {
    "input_image": "image",
    "input_audio": "audio",
    "input_file": "file",
    "computer_screenshot": "image",
}
_SILENT = frozenset({"additional_tools", "configuration_update"})
"""Items that say nothing to the model: a result before them still ends the conversation."""
_LONGEST_ID = 1_024


@dataclass(slots=True)
class Survey:
    """What one look at every item shows."""

    open_calls: list[ToolCallId] = field(default_factory=list)
    past_calls: list[ToolCallId] = field(default_factory=list)
    modalities: set[str] = field(default_factory=set)
    attachments: int = 0
    attached_size: int = 0
    standing: list[str] = field(default_factory=list)
    """The first instructions among the items."""
    asked: list[str] = field(default_factory=list)
    """What the user said last."""


def input_items(body: JsonObject) -> Sequence[JsonObject]:
    """Return the input as items, a text as a message; `GatewayError` (400) where it is neither."""
    given = body.get("input")
    if isinstance(given, str):
        return ({"type": "message", "role": "user", "content": given},)
    return items(body, "input", "input")


def kind(item: JsonObject) -> str:
    """Return the type of an item; messages may leave theirs out."""
    found = as_text(item.get("type"))
    return found or ("message" if "role" in item else "")


def call_id(item: JsonObject) -> ToolCallId:
    """Return the id that a call and its result share; empty where the client shares none."""
    found = as_text(item.get("call_id"))
    if not found and kind(item) in {"local_shell_call", "local_shell_call_output"}:
        found = as_text(item.get("id"))
    return ToolCallId(found)


def survey(given: Sequence[JsonObject]) -> Survey:
    """Look at every item; `GatewayError` (400) names the one that is wrong."""
    seen = Survey()
    for position, item in enumerate(given):
        path = f"input[{position}]"
        match kind(item):
            case "":
                raise invalid(f"`{path}.type` is missing.", f"{path}.type")
            case "message":
                _message(item, path, seen)
            case "function_call" | "custom_tool_call" as called:
                _call(item, path, CALLS[called])
                seen.past_calls.append(call_id(item))
                seen.open_calls.clear()
            case form if form in OUTPUTS:
                _output(item, path, form)
                _look_for_media(item.get("output"), seen)
                if call_id(item):
                    seen.open_calls.append(call_id(item))
            case form if form in BY_CALL:
                if call_id(item):
                    seen.past_calls.append(call_id(item))
                seen.open_calls.clear()
            case form if form not in _SILENT:
                _look_for_media([item.get("output")], seen)
                seen.open_calls.clear()
            case _:
                pass
    return seen


def check_pairs(given: Sequence[JsonObject]) -> None:
    """Refuse (400) a conversation in which a call has no result, or a result no call.

    A result may stand anywhere after its call: where it belongs is certain.
    """
    waiting: dict[ToolCallId, int] = {}
    for position, item in enumerate(given):
        found, form = call_id(item), kind(item)
        if not found:
            continue
        if form in CALLS or form in BY_CALL:
            waiting[found] = waiting.get(found, 0) + 1
        elif form in OUTPUTS:
            if not waiting.get(found):
                raise invalid(
                    f"`input[{position}]` answers the call `{found}`, which no item before makes.",
                    f"input[{position}].call_id",
                    mend="Send the call before its output, or `previous_response_id`.",
                )
            waiting[found] -= 1
    for found, count in waiting.items():
        if count:
            raise invalid(
                f"No tool output found for the call `{found}`.",
                "input",
                mend="Send an output for each call, if only to say that it was not run.",
            )


def _message(item: JsonObject, path: str, seen: Survey) -> None:
    if as_text(item.get("role")) not in _ROLES:
        raise invalid(f"`{path}.role` must be one of {', '.join(sorted(_ROLES))}.", f"{path}.role")
    content = item.get("content")
    if not isinstance(content, str | list):
        raise invalid(f"`{path}.content` must be a text or a list.", f"{path}.content")
    for at, part in enumerate(
        items({"content": content}, "content", f"{path}.content")
        if isinstance(content, list)
        else ()
    ):
        if text(part, "type", f"{path}.content[{at}].type") is None:
            raise invalid(f"`{path}.content[{at}].type` is missing.", f"{path}.content[{at}].type")
    seen.open_calls.clear()
    _look_for_media(content, seen)
    parts = [as_text(part.get("text")) for part in as_objects(content)]
    said = [content] if isinstance(content, str) else parts
    if item["role"] == "user":
        seen.asked = said
    elif item["role"] != "assistant" and not seen.standing:
        seen.standing = said


def _call(item: JsonObject, path: str, argued: str) -> None:
    for name in ("call_id", "name"):
        if text(item, name, f"{path}.{name}", longest=_LONGEST_ID) is None:
            raise invalid(f"`{path}.{name}` is missing.", f"{path}.{name}")
    if not isinstance(item.get(argued), str):
        raise invalid(f"`{path}.{argued}` must be a text.", f"{path}.{argued}")


def _output(item: JsonObject, path: str, form: str) -> None:
    if form not in {"function_call_output", "custom_tool_call_output"}:
        return
    if text(item, "call_id", f"{path}.call_id", longest=_LONGEST_ID) is None:
        raise invalid(f"`{path}.call_id` is missing.", f"{path}.call_id")
    if not isinstance(item.get("output"), str | list):
        raise invalid(f"`{path}.output` must be a text or a list.", f"{path}.output")


def _look_for_media(content: JsonValue, seen: Survey) -> None:
    for part in as_objects(content):
        modality = _ATTACHED.get(as_text(part.get("type")))
        if modality is not None:
            seen.modalities.add(modality)
            seen.attachments += 1
            seen.attached_size += sum(_sizes(part))


def _sizes(part: JsonObject) -> Iterator[int]:
    for value in part.values():
        if isinstance(value, str):
            yield len(value)
        elif isinstance(value, Mapping):
            yield from _sizes(value)
