"""The steps of a run, each a stream of events that ends when the step does.

The caller applies each event to the state before it asks for the next, so that a step finds the
outcome of what it yielded in the state.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from turnout.agent.approval import Gate, refused
from turnout.agent.base import ModelClient, StepConfig
from turnout.agent.context import opening, planning, shortening
from turnout.agent.loop.calls import Ask, step_with_call
from turnout.agent.loop.dispatch import Carried, batches, carry_out, refusal, runnable
from turnout.agent.loop.planning import parse_plan, progressed
from turnout.agent.loop.state import LoopState, Turn, cut, own_steps
from turnout.agent.tools.base import ToolContext, ToolOutput
from turnout.agent.tools.list_files import fitting
from turnout.agent.tools.output import Capped, cap, failing, output_name
from turnout.core.clock import Clock
from turnout.core.events import Event, ModelCallDone, Notice, ToolCallDone, ToolCallIntended
from turnout.core.messages import Message
from turnout.core.tools import ToolCall, ToolResult
from turnout.errors import ToolError

__all__ = ["Bench", "act_step", "list_some", "opening_messages", "plan_step", "settle_calls"]

_LISTED_FILES: Final = 200
_LISTED_CHARS: Final = 4_000
_FIRST_LINE: Final = 1_000
_RAW_TAIL: Final = 2_000
_MOST_KEPT: Final = 1 << 20
_INTERRUPTED: Final = (
    "Interrupted: the service stopped while this ran, so it may have been done in part. "
    "Look before you do it again."
)
_TOO_EARLY: Final = ToolOutput(
    "Not finished: an earlier call of the same reply failed. Read its result first, then mend it "
    "or call this again.",
    is_error=True,
)


@dataclass(frozen=True, slots=True)
class Bench:
    """What every step works with."""

    client: ModelClient
    context: ToolContext
    clock: Clock
    gate: Gate
    paths: tuple[str, ...]
    """Some files of the repository, to name in the task."""
    guidance: str = ""
    """What the repository says to agents."""


async def list_some(context: ToolContext) -> tuple[str, ...]:
    """Return the first files of the repository, as many as a prompt holds."""
    try:
        listing = await context.sandbox.list("**/*", limit=_LISTED_FILES)
    except ToolError:
        return ()
    return fitting(listing.paths, _LISTED_CHARS)


def opening_messages(bench: Bench, state: LoopState) -> tuple[Message, ...]:
    """Return what the first act step says, once the plan is made."""
    plan = state.plan.text if state.plan else ""
    prompt = state.surface.prompt
    opened = opening(bench.context.brief, bench.paths, plan, prompt, bench.guidance)
    own = own_steps(state, bench.context.config)
    if not own:
        return opened
    told = f"\n\nYou get {own[0]} alone, once you have said in plain text what you will do with it."
    return (*opened[:-1], replace(opened[-1], content=opened[-1].content + told))


async def plan_step(bench: Bench, state: LoopState) -> AsyncIterator[Event]:
    """Ask for the plan; the last event is a failed call, the plan, or a notice that none came."""
    brief = bench.context.brief
    messages = planning(brief, bench.paths, bench.guidance)
    ask = Ask(brief.run_id, state.next_step, "plan", f"plan-{state.next_step}", messages)
    async for event in step_with_call(bench.client, bench.context.config, ask):
        yield event
    reply = state.last
    if isinstance(reply, ModelCallDone):
        text = reply.message.content.strip()
        yield parse_plan(text) if text else Notice("The model gave no plan.", "warning")


async def act_step(
    bench: Bench, state: LoopState, messages: tuple[Message, ...], tool: str = ""
) -> AsyncIterator[Event]:
    """Make one model call and carry out the calls that it asks for.

    `tool`: the only one that the step carries.
    """
    own = own_steps(state, bench.context.config)
    specs = state.surface.specs
    ask = Ask(
        bench.context.brief.run_id,
        state.next_step,
        state.role.kind,
        state.role.conversation,
        messages,
        tuple(s for s in specs if (s.name == tool if tool else s.name not in own)),
        state.messages,
        _settings(bench, state, tool),
        bench.context.config.connections if state.role.kind == "act" and not tool else (),
    )
    async for event in step_with_call(bench.client, bench.context.config, ask):
        yield event
    reply = state.last
    if isinstance(reply, ModelCallDone):
        said = reply.message.content
        if state.plan and (update := progressed(state.plan, state.progress, said)):
            yield update
        if state.turn is not None:
            async for event in _tool_calls(bench, state, state.turn):
                yield event


async def settle_calls(bench: Bench, state: LoopState) -> AsyncIterator[Event]:
    """Answer what a crash has left without a result.

    A call that may have changed something and was under way is not made again: its result says so.
    """
    turn = state.turn
    if turn is None:
        return
    for call in state.open_calls:
        tool = state.surface.find(call.name)
        if tool is not None and tool.writes:
            interrupted = ToolResult(call.id, _INTERRUPTED, is_error=True)
            yield ToolCallDone(turn.reply.step, interrupted, 0.0)
    async for event in _tool_calls(bench, state, turn):
        yield event


def _settings(bench: Bench, state: LoopState, tool: str) -> StepConfig:
    config, brief = bench.context.config, bench.context.brief
    settings = config.tool_steps[tool] if tool else config.steps[state.role.kind]
    if brief.objective is not None and state.role.kind == "act":
        settings = replace(settings, objective=brief.objective)
    return settings


async def _tool_calls(bench: Bench, state: LoopState, turn: Turn) -> AsyncIterator[Event]:
    """Carry out or refuse the calls of a turn that have no result yet."""
    reply = turn.reply
    for batch in batches(state.surface, runnable(reply)[len(turn.results) :]):
        if turn.has_ended:
            break
        for call in batch:
            async for asked in bench.gate.ask(reply.step, call, state.surface):
                yield asked
        for call in batch:
            if call not in state.open_calls:
                yield ToolCallIntended(reply.step, call)
        for carried in await _carry_out_allowed(bench, state, batch):
            ends_early = carried.output.ends_run and any(r.is_error for r in turn.results)
            done = replace(carried, output=_TOO_EARLY) if ends_early else carried
            async for event in _result(bench, state, reply.step, done):
                yield event
    for call in state.unanswered():
        if call not in state.open_calls:
            yield ToolCallIntended(reply.step, call)
        not_run = Carried(call, refusal(reply, ended=turn.has_ended), 0.0)
        async for event in _result(bench, state, reply.step, not_run):
            yield event


async def _carry_out_allowed(
    bench: Bench, state: LoopState, batch: Sequence[ToolCall]
) -> Sequence[Carried]:
    """Carry out what nobody refused; results are in the order of the calls."""
    allowed = [call for call in batch if call.id not in state.refusals]
    carried = await carry_out(allowed, state.surface, bench.context, bench.clock)
    done = {each.call.id: each for each in carried}
    return [
        done.get(call.id) or Carried(call, refused(state.refusals[call.id]), 0.0) for call in batch
    ]


async def _result(
    bench: Bench, state: LoopState, step: int, carried: Carried
) -> AsyncIterator[Event]:
    config, output = bench.context.config, carried.output
    name = output_name(state.results + 1)
    content = cap(output.text, config.output_cap, name if output.log else "")
    if output.log and len(output.text) > config.summarise_above:
        number = state.next_step
        ask = Ask(
            bench.context.brief.run_id,
            number,
            "summary",
            f"summary-{number}",
            shortening(output.text),
        )
        async for event in step_with_call(bench.client, config, ask):
            yield event
        reply = state.last
        if isinstance(reply, ModelCallDone) and not cut(reply):
            summary = reply.message.content.strip()
            if summary:
                content = _summarised(output.text, summary, config.output_cap, name)
    full = output.text[:_MOST_KEPT] if output.log and content.elided else ""
    result = ToolResult(
        carried.call.id, content.text, output.is_error, content.elided, output.ends_run, full
    )
    yield ToolCallDone(step, result, carried.seconds)


def _summarised(text: str, summary: str, limit: int, name: str) -> Capped:
    """Join a summary with the first line of the output, which states how it ended, and its end.

    Names of failing tests that the summary lacks are added.
    """
    first = text.partition("\n")[0][:_FIRST_LINE]
    tail = text[max(len(first), len(text) - _RAW_TAIL) :]
    lost = [one for one in failing(text) if one not in f"{first}\n{summary}\n{tail}"]
    named = f"[failing too: {', '.join(lost)}]\n" if lost else ""
    whole = (
        f"{first}\n[{len(text)} characters of output, summarised; "
        f"read_file shows all of it as `{name}`]\n{summary}\n{named}"
        f"[the end of the output, as it is:]\n{tail}"
    )
    kept = cap(whole, limit)
    return Capped(kept.text, len(text) - len(first) - len(tail) + kept.elided)
