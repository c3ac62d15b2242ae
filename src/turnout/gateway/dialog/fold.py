"""From the pieces of an answer to the whole, and back."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import assert_never

from turnout.gateway.dialog.conversation import Call, Foreign, Reasoning, Refusal, Text
from turnout.gateway.dialog.events import (
    AnswerPart,
    CallDelta,
    CallOpened,
    Event,
    ForeignPart,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
)

__all__ = ["events_of", "fold_events"]

_Said = TextDelta | RefusalDelta | ReasoningDelta


def fold_events(events: Iterable[Event]) -> tuple[AnswerPart, ...]:
    """Return the parts that the events amount to.

    Parts stand in the order in which they began. A signature ends the thought that it signs.
    """
    begun: list[list[_Said] | CallOpened | Foreign] = []
    arguments: dict[int, list[str]] = {}
    # A run of pieces is joined once, at its end: answers come in thousands.
    run: list[_Said] = []
    for event in events:
        match event:
            case TextDelta() | RefusalDelta() | ReasoningDelta():
                if run and type(run[-1]) is type(event) and not _is_closed(run[-1]):
                    run.append(event)
                    continue
                run = [event]
                begun.append(run)
            case CallDelta():
                arguments[event.index].append(event.arguments)
            case CallOpened():
                arguments[event.index] = []
                run = []
                begun.append(event)
            case ForeignPart():
                run = []
                begun.append(event.part)
            case _:
                assert_never(event)
    return tuple(_part(part, arguments) for part in begun)


def events_of(parts: Sequence[AnswerPart]) -> Iterator[Event]:
    """Yield the events of an answer that came whole."""
    index = 0
    for part in parts:
        match part:
            case Text():
                yield TextDelta(part.text)
            case Reasoning():
                yield ReasoningDelta(part.text, part.signature, part.encrypted)
            case Refusal():
                yield RefusalDelta(part.text)
            case Call():
                yield CallOpened(index, part.id, part.name, part.type)
                if part.arguments:
                    yield CallDelta(index, part.arguments)
                index += 1
            case Foreign():
                yield ForeignPart(part)
            case _:
                assert_never(part)


def _part(
    begun: Sequence[_Said] | CallOpened | Foreign, arguments: Mapping[int, Sequence[str]]
) -> AnswerPart:
    match begun:
        case CallOpened():
            return Call(begun.id, begun.name, "".join(arguments[begun.index]), begun.type)
        case Foreign():
            return begun
        case _:
            text, last = "".join([event.text for event in begun]), begun[-1]
            if isinstance(last, ReasoningDelta):
                return Reasoning(text, last.signature, last.encrypted)
            return Text(text) if isinstance(last, TextDelta) else Refusal(text)


def _is_closed(event: _Said) -> bool:
    return isinstance(event, ReasoningDelta) and bool(event.signature or event.encrypted)
