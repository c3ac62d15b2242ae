"""What one request's rounds have shown, kept and cost so far."""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import orjson

from turnout.core.ids import ModelId, ToolCallId
from turnout.core.json import JsonObject, as_object, as_objects, as_text
from turnout.gateway.connections.offer import Offer
from turnout.gateway.connections.responses import call_item
from turnout.gateway.connections.weaver import Ran, Weaver
from turnout.gateway.dialog.conversation import Call, Foreign, Reasoning
from turnout.gateway.dialog.events import (
    AnswerPart,
    CallDelta,
    CallOpened,
    Event,
    ForeignPart,
    Piece,
    Reply,
    TextDelta,
)
from turnout.gateway.dialog.fold import fold_events
from turnout.gateway.dialog.thoughts import Thought, decode_thought, encode_thought
from turnout.gateway.exchange import InferenceRequest

__all__ = ["KeptTurn", "Rounds", "Sight", "read_kept"]

_BETWEEN = "\n\n"


@dataclass(frozen=True, slots=True)
class KeptTurn:
    """What the gateway and a model said to each other before an answer that made calls."""

    entries: tuple[JsonObject, ...]
    """Of a body of the client's shape; the answer itself and results of its other calls last."""
    thoughts: Mapping[ToolCallId, Thought] = field(default_factory=dict)

    def text(self) -> str:
        """Return it as JSON."""
        thoughts = {call: encode_thought(thought) for call, thought in self.thoughts.items()}
        return orjson.dumps({"entries": self.entries, "thoughts": thoughts}).decode()


def read_kept(text: str) -> KeptTurn:
    """Return what `KeptTurn.text` wrote."""
    body: JsonObject = as_object(orjson.loads(text))
    thoughts = {
        ToolCallId(call): decode_thought(as_text(kept))
        for call, kept in as_object(body.get("thoughts")).items()
    }
    return KeptTurn(tuple(as_objects(body.get("entries"))), thoughts)


class Rounds:
    """The state of one request; a round is one answer of the model."""

    def __init__(self, offer: Offer, weaver: Weaver, request: InferenceRequest) -> None:
        self.offer = offer
        self.request = request
        """To be sent next."""
        self.ran = 0
        """Calls that the gateway ran."""
        self._weaver = weaver
        self._shows_calls = request.shape == "responses"
        self._seen: list[Event] = []
        self._entries: list[JsonObject] = []
        self._thoughts: dict[ToolCallId, Thought] = {}

    def sight(self) -> "Sight":
        """Return what decides which pieces of the next round the client sees."""
        spoke = any(isinstance(event, TextDelta) for event in self._seen)
        apart = spoke and not self._shows_calls
        return Sight(self.offer, self._seen, between=_BETWEEN if apart else "")

    def ours(self, reply: Reply) -> tuple[Call, ...]:
        """Return the calls of an answer that the gateway is to run; none of one that was cut."""
        if reply.finish != "tool_calls":
            return ()
        return tuple(call for call in reply.calls if call.name in self.offer.places)

    def theirs(self, reply: Reply) -> tuple[Call, ...]:
        """Return the calls of an answer that are the client's to run."""
        return tuple(call for call in reply.calls if call.name not in self.offer.places)

    def show(self, ran: Sequence[Ran]) -> Iterator[Piece]:
        """Yield what the client sees of calls that were run."""
        self.ran += len(ran)
        if self._shows_calls:
            for done in ran:
                item = call_item(done, f"mcp_{secrets.token_hex(16)}")
                event = ForeignPart(Foreign("responses", item))
                self._seen.append(event)
                yield Piece((event,))

    def went_on(self, reply: Reply, ran: Sequence[Ran], model: ModelId) -> None:
        """Note a round; the next request has it at its end."""
        entries = self._weaver.said(reply, ran)
        self._entries += entries
        thought = Thought(model, tuple(p for p in reply.parts if isinstance(p, Reasoning)))
        if thought.parts:
            self._thoughts.update({call.id: thought for call in reply.calls})
        self.request = replace(
            self.request,
            body=self._weaver.extend(self.request.body, entries),
            thoughts={**self.request.thoughts, **self._thoughts},
        )

    def choose(self, choice: str) -> None:
        """Change the tool choice of the next request."""
        body = self._weaver.choose(self.request.body, choice)
        self.request = replace(self.request, body=body, tool_choice=choice)

    def kept(self) -> KeptTurn:
        """Return what the client must not lose though it never sees it."""
        return KeptTurn(tuple(self._entries), self._thoughts)

    def reply(self, last: Reply) -> Reply:
        """Return all that the client saw as one answer that ends as the last round did."""
        parts: tuple[AnswerPart, ...] = fold_events(self._seen)
        finish = last.finish
        if finish == "tool_calls" and not self.theirs(last):
            finish = "stop"
        return replace(last, parts=parts, finish=finish, origin=None)


class Sight:
    """What a client sees of one round: all but the calls of functions that it did not declare."""

    def __init__(self, offer: Offer, seen: list[Event], *, between: str) -> None:
        self._offer = offer
        self._seen = seen
        self._between = between
        """Said before the first text."""
        self._indices: dict[int, int] = {}
        """From the index of the model to that of the client, of calls that it sees."""

    def piece(self, piece: Piece) -> Piece | None:
        """Return what the client sees of a piece; None where that is nothing.

        What is native to the upstream's shape counts its calls and messages otherwise.
        """
        events = tuple(shown for event in piece.events if (shown := self._event(event)) is not None)
        self._seen += events
        return Piece(events) if events else None

    def _event(self, event: Event) -> Event | None:
        match event:
            case CallOpened():
                if event.name in self._offer.places:
                    return None
                self._indices[event.index] = len(self._indices)
                return replace(event, index=self._indices[event.index])
            case CallDelta():
                index = self._indices.get(event.index)
                return None if index is None else replace(event, index=index)
            case TextDelta() if self._between and event.text:
                said, self._between = self._between + event.text, ""
                return TextDelta(said)
            case _:
                return event
