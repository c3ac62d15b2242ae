"""The tool calls of a stream, put together from fragments that follow no rule too closely."""

from dataclasses import dataclass

import orjson

from turnout.core.ids import ToolCallId, new_tool_call_id
from turnout.core.json import JsonObject, JsonValue, as_object, as_text

__all__ = ["CallTable", "StreamedCall"]


@dataclass(slots=True)
class StreamedCall:
    """One call as far as it has come."""

    id: ToolCallId
    name: str = ""
    arguments: str = ""


class CallTable:
    """Gives each fragment the index of its call and keeps what the calls amount to.

    Upstreams leave the index out, send 0 for every parallel call, repeat the id in each
    fragment, or send no id at all.
    """

    def __init__(self) -> None:
        self.calls: list[StreamedCall] = []
        self._place_of: dict[int, int] = {}

    def add(self, fragment: JsonObject) -> dict[str, JsonValue]:
        """Return the fragment with its index, and with id and type where it opens a call."""
        function = as_object(fragment.get("function"))
        name, given = as_text(function.get("name")), as_text(fragment.get("id"))
        place = self._find(fragment.get("index"), given, name)
        opens = place == len(self.calls)
        if opens:
            self.calls.append(StreamedCall(ToolCallId(given or new_tool_call_id())))
        call = self.calls[place]
        index = fragment.get("index")
        if isinstance(index, int):
            self._place_of[index] = place
        piece = _argument_text(function.get("arguments"))
        call.name += name if opens or not call.name else ""
        call.arguments += piece
        placed: dict[str, JsonValue] = {**fragment, "index": place}
        if opens:
            placed |= {"id": call.id, "type": fragment.get("type") or "function"}
        if function:
            placed["function"] = {**function, "arguments": piece}
        return placed

    def _find(self, index: JsonValue, given: str, name: str) -> int:
        known = next((at for at, call in enumerate(self.calls) if call.id == given), None)
        if known is not None:
            return known
        new = len(self.calls)
        if isinstance(index, int):
            place = self._place_of.get(index, new)
        else:
            place = new - 1 if self.calls else new
        opens_another = place < new and bool(given or (name and self._is_named(place, index)))
        return new if opens_another else place

    def _is_named(self, place: int, index: JsonValue) -> bool:
        # With an index, a repeated name is a habit; without one, it can only be another call.
        return not isinstance(index, int) and bool(self.calls[place].name)


def _argument_text(arguments: JsonValue) -> str:
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
