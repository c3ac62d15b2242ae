"""The tool calls of a stream, put together from fragments that follow no rule too closely."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import orjson

from turnout.core.ids import ToolCallId, new_tool_call_id
from turnout.core.json import JsonObject, JsonValue, as_object, as_text
from turnout.gateway.dialog.conversation import CallType
from turnout.gateway.dialog.events import CallDelta, CallOpened, Event
from turnout.gateway.exchange import UpstreamError

__all__ = ["CallTable", "PlacedFragment", "StreamedCall"]


_MOST_CALLS = 512
"""Calls of one answer; no model makes so many."""


@dataclass(slots=True)
class StreamedCall:
    """One call as far as it has come."""

    id: ToolCallId
    name: str = ""
    arguments: str = ""
    type: CallType = "function"
    given: str = ""
    """The id that the upstream gave it."""
    number: int | None = None
    """The index that the upstream gave it."""
    place: int | None = None
    """The index that it has; None until its name is known."""
    opening: dict[str, JsonValue] = field(default_factory=dict)
    """What came before its name."""


class PlacedFragment(NamedTuple):
    """A fragment as clients may read it."""

    fragment: JsonObject | None
    """None: nothing to show yet."""
    events: Sequence[Event]


class CallTable:
    """Gives each fragment the index of its call and keeps what the calls amount to.

    Upstreams leave the index out, send 0 for every parallel call, repeat the id in each
    fragment, give two calls one id, or send no id at all.
    """

    def __init__(self) -> None:
        self.repairs: dict[str, None] = {}
        """What was mended so far."""
        self._all: list[StreamedCall] = []
        self._named: list[StreamedCall] = []

    @property
    def calls(self) -> Sequence[StreamedCall]:
        """The calls whose name is known, each at its index."""
        return self._named

    def add(self, fragment: JsonObject) -> PlacedFragment:
        """Return the fragment with its index, and with id and type where it opens a call.

        `UpstreamError` where there are more calls than any answer has.
        """
        kind: CallType = "custom" if fragment.get("type") == "custom" else "function"
        said = as_object(fragment.get(kind))
        call = self._find(fragment, as_text(said.get("name")), kind)
        if call.type == "custom":
            said = as_object(fragment.get("custom"))
        field_ = "input" if call.type == "custom" else "arguments"
        piece = _argument_text(said.get(field_))
        call.name = call.name or as_text(said.get("name"))
        call.arguments += piece
        if call.place is not None:
            return self._more(call, fragment, said, piece)
        call.opening = {**call.opening, **fragment}
        return self._open(call, said, field_) if call.name else PlacedFragment(None, ())

    def unnamed(self) -> bool:
        """Whether a call never got a name, and so was never shown."""
        return len(self._named) < len(self._all)

    def _open(self, call: StreamedCall, said: JsonObject, field_: str) -> PlacedFragment:
        call.place = len(self._named)
        self._named.append(call)
        if not call.given:
            self.repairs["call id added"] = None
        if call.number is None:
            self.repairs["call index added"] = None
        elif call.number != call.place:
            self.repairs["call index corrected"] = None
        detail = {**said, "name": call.name, field_: call.arguments}
        shown: JsonObject = {
            **call.opening,
            "index": call.place,
            "id": call.id,
            "type": call.type,
            call.type: detail,
        }
        call.opening = {}
        events: list[Event] = [CallOpened(call.place, call.id, call.name, call.type)]
        if call.arguments:
            events.append(CallDelta(call.place, call.arguments))
        return PlacedFragment(shown, events)

    def _more(
        self, call: StreamedCall, fragment: JsonObject, said: JsonObject, piece: str
    ) -> PlacedFragment:
        place = call.place or 0
        shown: dict[str, JsonValue] = {**fragment, "index": place}
        if shown.get("id"):
            shown["id"] = call.id
        if said:
            shown[call.type] = {**said, ("input" if call.type == "custom" else "arguments"): piece}
        return PlacedFragment(shown, (CallDelta(place, piece),) if piece else ())

    def _find(self, fragment: JsonObject, name: str, kind: CallType) -> StreamedCall:
        """Return the call that a fragment belongs to, a new one where it opens one."""
        given, index = as_text(fragment.get("id")), fragment.get("index")
        number = index if isinstance(index, int) and not isinstance(index, bool) else None
        same_id = [call for call in self._all if given and call.given == given]
        if number is None:
            found = same_id[-1] if same_id else self._last(given, name)
        else:
            found = self._numbered(number, given, name, same_id)
        if found is not None:
            return found
        if len(self._all) >= _MOST_CALLS:
            raise UpstreamError(f"makes more than {_MOST_CALLS} tool calls at once", status=None)
        taken = any(call.id == given for call in self._all)
        if taken:
            self.repairs["duplicate call id replaced"] = None
        call = StreamedCall(
            new_tool_call_id() if taken or not given else ToolCallId(given),
            type=kind,
            given=given,
            number=number,
        )
        self._all.append(call)
        return call

    def _last(self, given: str, name: str) -> StreamedCall | None:
        """Return the call that a fragment without an index goes on with."""
        if not self._all:
            return None
        last = self._all[-1]
        return None if name and (last.name or given) else last

    def _numbered(
        self, number: int, given: str, name: str, same_id: Sequence[StreamedCall]
    ) -> StreamedCall | None:
        here = [call for call in self._all if call.number == number]
        both = [call for call in same_id if call.number == number]
        if both:
            return both[-1]
        if not here:
            # The same id under another index: another call where it has a name.
            return same_id[-1] if same_id and not name else None
        # Every call at one index: a new id with a name opens the next, and so does a name where
        # nothing could follow the arguments so far.
        another = name and ((given and here[-1].given) or _is_whole(here[-1].arguments))
        return None if another else here[-1]


def _is_whole(arguments: str) -> bool:
    try:
        return isinstance(orjson.loads(arguments), dict)
    except orjson.JSONDecodeError:
        return False


def _argument_text(arguments: JsonValue) -> str:
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
