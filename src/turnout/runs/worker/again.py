"""What of a work that is done again is on record already."""

from collections.abc import AsyncGenerator, AsyncIterator, Hashable, Iterable

from turnout.core.events import (
    Event,
    ModelCallDone,
    ModelCallIntended,
    Notice,
    PlanMade,
    StepStarted,
    ToolCallDone,
    ToolCallIntended,
)

__all__ = ["unsaid"]


async def unsaid(events: AsyncIterator[Event], record: Iterable[Event]) -> AsyncIterator[Event]:
    """Pass events on but for those that say what the record of the same work says."""
    said = {_mark(event) for event in record} - {None}
    try:
        async for event in events:
            mark = _mark(event)
            if mark is None or mark not in said:
                yield event
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()


def _mark(event: Event) -> Hashable:
    """Return what is the same of two events that say the same; None: no two do."""
    match event:
        case StepStarted(step=step):
            return event.type, step
        case ModelCallIntended(idempotency_key=key) | ModelCallDone(idempotency_key=key):
            return event.type, key
        case ToolCallIntended(step=step, call=call):
            return event.type, step, call.id
        case ToolCallDone(step=step, result=result):
            return event.type, step, result.call_id, result.content, result.is_error
        case PlanMade(text=text) | Notice(text=text):
            return event.type, text
        case _:
            return None
