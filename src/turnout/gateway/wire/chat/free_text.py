"""Calls of tools that take one free text, given back as the client declared them.

Where a deployment knows no such tools it was offered functions in their place.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from turnout.core.json import JsonObject, as_object, as_objects, as_text
from turnout.gateway.dialog.conversation import Call
from turnout.gateway.dialog.custom import unwrap
from turnout.gateway.dialog.events import AnswerPart, CallDelta, CallOpened, Event

__all__ = ["FreeTextCalls", "free_text_parts", "free_text_tools"]


def free_text_tools(body: JsonObject) -> frozenset[str]:
    """Return the names of the free-text tools that a body declares."""
    return frozenset(
        as_text(as_object(tool.get("custom")).get("name"))
        for tool in as_objects(body.get("tools"))
        if tool.get("type") == "custom"
    )


def free_text_parts(parts: Sequence[AnswerPart], names: frozenset[str]) -> tuple[AnswerPart, ...]:
    """Return the parts of an answer with the calls of these tools as they were declared."""
    return tuple(
        replace(part, type="custom", arguments=unwrap(part.arguments))
        if isinstance(part, Call) and part.type == "function" and part.name in names
        else part
        for part in parts
    )


class FreeTextCalls:
    """The same for a stream: a text is known once the arguments are whole."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._held: dict[int, list[str]] = {}

    def seen(self, events: Sequence[Event]) -> Sequence[Event]:
        """Return the events with the arguments of such calls held back."""
        return list(self._held_back(events)) if self._names else events

    def rest(self) -> Sequence[Event]:
        """Return what was held back."""
        return [CallDelta(at, unwrap("".join(pieces))) for at, pieces in self._held.items()]

    def _held_back(self, events: Sequence[Event]) -> Iterator[Event]:
        for event in events:
            match event:
                case CallOpened() if event.type == "function" and event.name in self._names:
                    self._held[event.index] = []
                    yield replace(event, type="custom")
                case CallDelta() if event.index in self._held:
                    self._held[event.index].append(event.arguments)
                case _:
                    yield event
