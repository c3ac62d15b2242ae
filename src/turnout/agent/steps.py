"""The steps of a run, each a stream of events that ends when the step does.

A step is handed the record so far; its caller appends each event before asking for the next, so
that a step finds the outcome of what it yielded at the end of the record.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from turnout.agent.base import ModelClient
from turnout.agent.calls import Ask, step_with_call
from turnout.agent.context import opening, planning, shortening
from turnout.agent.dispatch import Carried, batches, carry_out, refusal, runnable
from turnout.agent.history import MAIN, cut, next_step, plan
from turnout.agent.tools.base import ToolContext
from turnout.agent.tools.list_files import fitting
from turnout.agent.tools.output import Capped, cap
from turnout.agent.tools.surfaces import Surface
from turnout.core.clock import Clock
from turnout.core.events import (
    Event,
    ModelCallDone,
    Notice,
    PlanMade,
    ToolCallDone,
    ToolCallIntended,
)
from turnout.core.messages import Message
from turnout.core.tools import ToolResult
from turnout.errors import ToolError

__all__ = ["Bench", "act_step", "list_some", "opening_messages", "plan_step"]

_LISTED_FILES = 200
_LISTED_CHARS = 4_000
_FIRST_LINE = 1_000
_RAW_TAIL = 2_000


@dataclass(frozen=True, slots=True)
class Bench:
    """What every step works with."""

    client: ModelClient
    surface: Surface
    context: ToolContext
    clock: Clock
    paths: tuple[str, ...]
    """Some files of the repository, to name in the task."""


async def list_some(context: ToolContext) -> tuple[str, ...]:
    """Return the first files of the repository, as many as a prompt holds."""
    try:
        listing = await context.sandbox.list("**/*", limit=_LISTED_FILES)
    except ToolError:
        return ()
    return fitting(listing.paths, _LISTED_CHARS)


def opening_messages(bench: Bench, events: Sequence[Event]) -> tuple[Message, ...]:
    """Return what the first act step says, once the plan is made."""
    return opening(bench.context.brief, bench.paths, plan(events))


async def plan_step(bench: Bench, events: Sequence[Event]) -> AsyncIterator[Event]:
    """Ask for the plan; the last event is a failed call, the plan, or a notice that none came."""
    brief = bench.context.brief
    ask = Ask(brief.run_id, next_step(events), "plan", "plan", planning(brief, bench.paths))
    async for event in step_with_call(bench.client, bench.context.config, events, ask):
        yield event
    reply = events[-1]
    if isinstance(reply, ModelCallDone):
        text = reply.message.content.strip()
        yield PlanMade(text) if text else Notice("The model gave no plan.", "warning")


async def act_step(
    bench: Bench, events: Sequence[Event], messages: tuple[Message, ...]
) -> AsyncIterator[Event]:
    """Make one model call and carry out the calls that it asks for."""
    step = next_step(events)
    run_id = bench.context.brief.run_id
    ask = Ask(run_id, step, "act", MAIN, messages, bench.surface.specs)
    async for event in step_with_call(bench.client, bench.context.config, events, ask):
        yield event
    reply = events[-1]
    if isinstance(reply, ModelCallDone):
        async for event in _tool_calls(bench, events, reply):
            yield event


async def _tool_calls(
    bench: Bench, events: Sequence[Event], reply: ModelCallDone
) -> AsyncIterator[Event]:
    done, ended = 0, False
    for batch in batches(bench.surface, runnable(reply)):
        for call in batch:
            yield ToolCallIntended(reply.step, call)
        for carried in await carry_out(batch, bench.surface, bench.context, bench.clock):
            async for event in _result(bench, events, reply.step, carried):
                yield event
            ended = ended or carried.output.ends_run
        done += len(batch)
        if ended:
            break
    for call in reply.message.tool_calls[done:]:
        yield ToolCallIntended(reply.step, call)
        refused = Carried(call, refusal(reply, ended=ended), 0.0)
        async for event in _result(bench, events, reply.step, refused):
            yield event


async def _result(
    bench: Bench, events: Sequence[Event], step: int, carried: Carried
) -> AsyncIterator[Event]:
    config, output = bench.context.config, carried.output
    content = cap(output.text, config.output_cap)
    if output.log and len(output.text) > config.summarise_above:
        number = next_step(events)
        run_id = bench.context.brief.run_id
        ask = Ask(run_id, number, "summary", f"summary-{number}", shortening(output.text))
        async for event in step_with_call(bench.client, config, events, ask):
            yield event
        reply = events[-1]
        if isinstance(reply, ModelCallDone) and not cut(reply):
            summary = reply.message.content.strip()
            content = _summarised(output.text, summary, config.output_cap) if summary else content
    result = ToolResult(
        carried.call.id, content.text, output.is_error, content.elided, output.ends_run
    )
    yield ToolCallDone(step, result, carried.seconds)


def _summarised(text: str, summary: str, limit: int) -> Capped:
    """Join a summary with the first line of the output, which states how it ended, and its end."""
    first = text.partition("\n")[0][:_FIRST_LINE]
    tail = text[max(len(first), len(text) - _RAW_TAIL) :]
    whole = (
        f"{first}\n[{len(text)} characters of output, summarised:]\n{summary}\n"
        f"[the end of the output, as it is:]\n{tail}"
    )
    kept = cap(whole, limit)
    return Capped(kept.text, len(text) - len(first) - len(tail) + kept.elided)
