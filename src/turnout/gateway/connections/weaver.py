"""How the gateway's own part of a conversation stands in a request body."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import orjson

from turnout.core.ids import ToolCallId
from turnout.core.json import JsonObject, read_json
from turnout.gateway.connections.offer import Offer, Place
from turnout.gateway.dialog.conversation import Call
from turnout.gateway.dialog.events import Reply

__all__ = ["Ran", "Weaver", "arguments_of"]


@dataclass(frozen=True, slots=True)
class Ran:
    """A call that the gateway has run."""

    call: Call
    place: Place
    text: str
    """What the model reads."""
    is_error: bool = False


class Weaver(Protocol):
    """One API shape; bodies come and go whole, nothing is changed in place."""

    def declare(self, body: JsonObject, offer: Offer) -> JsonObject:
        """Return the body with functions in place of the connections that it names."""
        ...

    def said(self, reply: Reply, ran: Sequence[Ran]) -> tuple[JsonObject, ...]:
        """Return an answer with the results of calls, as entries of the conversation."""
        ...

    def extend(self, body: JsonObject, entries: Sequence[JsonObject]) -> JsonObject:
        """Return the body with more at the end of its conversation."""
        ...

    def restore(
        self, body: JsonObject, kept: Mapping[ToolCallId, Sequence[JsonObject]]
    ) -> JsonObject:
        """Return the body with each answer that makes such a call replaced by what was kept."""
        ...

    def choose(self, body: JsonObject, choice: str) -> JsonObject:
        """Return the body with the tool choice `auto` or `none`."""
        ...


def arguments_of(call: Call) -> JsonObject | None:
    """Return the arguments of a call; None where they are no JSON object."""
    try:
        parsed = read_json(call.arguments or "{}")
    except orjson.JSONDecodeError:
        return None
    return parsed if isinstance(parsed, dict) else None
