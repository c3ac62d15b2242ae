"""An answer as it comes, piece by piece, and as a whole."""

from dataclasses import dataclass

from turnout.core.ids import ToolCallId
from turnout.core.inference import FinishReason
from turnout.core.json import JsonObject
from turnout.core.usage import Usage
from turnout.gateway.dialog.conversation import (
    Call,
    CallType,
    Foreign,
    Reasoning,
    Refusal,
    Shape,
    Text,
)

__all__ = [
    "AnswerPart",
    "CallDelta",
    "CallOpened",
    "Ending",
    "Event",
    "ForeignPart",
    "Native",
    "Piece",
    "ReasoningDelta",
    "RefusalDelta",
    "Reply",
    "TextDelta",
]

AnswerPart = Text | Reasoning | Refusal | Call | Foreign


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """More thought; a signature or an encrypted form comes once, at its end."""

    text: str = ""
    signature: str = ""
    encrypted: str = ""


@dataclass(frozen=True, slots=True)
class RefusalDelta:
    """More of why the model will not answer."""

    text: str


@dataclass(frozen=True, slots=True)
class CallOpened:
    """A tool call begins."""

    index: int
    """0, 1, … in the order of the calls."""
    id: ToolCallId
    """Never empty, unique within the answer."""
    name: str
    type: CallType = "function"


@dataclass(frozen=True, slots=True)
class CallDelta:
    """More of a call's arguments; calls may take turns."""

    index: int
    arguments: str


@dataclass(frozen=True, slots=True)
class ForeignPart:
    """A whole part that one shape alone can say."""

    part: Foreign


Event = TextDelta | ReasoningDelta | RefusalDelta | CallOpened | CallDelta | ForeignPart


@dataclass(frozen=True, slots=True)
class Native:
    """One thing that an upstream sent, as it came or mended: a stream's event or a whole body."""

    shape: Shape
    value: JsonObject
    name: str = ""
    """The event's name, in shapes that name theirs."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a streamed answer that the client may see at once.

    A writer of the native's shape sends the native, every other one what the events say. Either
    may be missing: a native that means nothing elsewhere, events that a repair has added.
    """

    events: tuple[Event, ...] = ()
    native: Native | None = None

    @property
    def visible(self) -> bool:
        """Whether a user would notice it: after that no other deployment can be asked."""
        return any(not isinstance(e, ReasoningDelta) or bool(e.text) for e in self.events)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a streamed answer ends."""

    finish: FinishReason
    pieces: tuple[Piece, ...] = ()
    """What the client may see before the end, such as arguments that a repair filled in."""
    stop_sequence: str | None = None
    """Which of the request's stop sequences ended it."""
    natives: tuple[Native, ...] = ()
    """The upstream's own last events, those with the finish reason first; without usage."""
    usage_native: JsonObject | None = None
    """The counts as the upstream sent them."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer."""

    parts: tuple[AnswerPart, ...]
    """In the order in which they came."""
    finish: FinishReason
    usage: Usage | None = None
    """None where the upstream sent no counts."""
    stop_sequence: str | None = None
    origin: Native | None = None
    """What the upstream said it in, where its shape keeps answers."""

    @property
    def calls(self) -> tuple[Call, ...]:
        """The tool calls, in their order."""
        return tuple(part for part in self.parts if isinstance(part, Call))

    @property
    def text(self) -> str:
        """All text, joined."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))
