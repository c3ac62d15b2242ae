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
from turnout.agent.loop.calls import Ask, given_up, step_with_call
from turnout.agent.loop.dispatch import Carried, batches, carry_out, refusal, runnable
from turnout.agent.loop.planning import parse_plan, progressed
from turnout.agent.loop.state import LoopState, Turn, cut, own_steps
from turnout.agent.tools.base import ToolContext, ToolOutput
from turnout.agent.tools.finish import Finish
from turnout.agent.tools.list_files import fitting
from turnout.agent.tools.output import Capped, cap, failing, output_name
from turnout.core.clock import Clock
from turnout.core.events import (
    Event,
    ModelCallDone,
    ModelCallIntended,
    Notice,
    StepStarted,
    ToolCallDone,
    ToolCallIntended,
)
from turnout.core.inference import StepKind
from turnout.core.messages import Message
from turnout.core.tools import ToolCall, ToolResult, function_name
from turnout.errors import ToolError

__all__ = [
    "Bench",
    "act_step",
    "begun_of",
    "first_number",
    "follow_reply",
    "list_some",
    "opening_messages",
    "plan_step",
]

_LISTED_FILES: Final = 200
_LISTED_CHARS: Final = 4_000
_LONGEST_PLAN: Final = 8_000
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
    guidance: str
    """What the repository says to agents."""
    started: float
    """When the run's work began, by the clock."""

    @property
    def seconds(self) -> float:
        """How long the run has worked, without waits for people."""
        return self.clock.monotonic() - self.started - self.gate.waited

    @property
    def seconds_left(self) -> float | None:
        """How long it may go on; None: without an end of its own."""
        most = self.context.config.max_seconds
        return None if most is None else max(0.0, most - self.seconds)


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
    name = state.surface.name
    opened = opening(bench.context.brief, bench.paths, plan, name, bench.guidance)
    own = own_steps(state, bench.context.config)
    if not own:
        return opened
    names = ", ".join(map(function_name, own))
    told = f"\n\nYou get {names} alone, once you have said in plain text what you will do with it."
    if len(own) > 1:
        told = (
            f"\n\nYou get each of {names} alone, once you have named it in plain text and "
            "said what you will do with it."
        )
    return (*opened[:-1], replace(opened[-1], content=opened[-1].content + told))


async def plan_step(bench: Bench, state: LoopState) -> AsyncIterator[Event]:
    """Ask for the plan; the last event is a failed call, the plan, or a notice that none came.

    A reply that is on record already is not asked for again.
    """
    if state.plan_reply is None:
        brief, number = bench.context.brief, first_number(state, "plan")
        messages = planning(brief, bench.paths, bench.guidance)
        ask = Ask(brief.run_id, number, "plan", f"plan-{number}", messages)
        ask = replace(ask, begun=begun_of(state, "plan"), seconds=bench.seconds_left)
        async for event in step_with_call(bench.client, bench.context.config, ask):
            yield event
    if state.plan_reply is not None:
        text = state.plan_reply.message.content.strip()
        yield (
            parse_plan(cap(text, _LONGEST_PLAN).text)
            if text
            else Notice("The model gave no plan.", "warning")
        )


async def act_step(
    bench: Bench, state: LoopState, messages: tuple[Message, ...], tool: str = ""
) -> AsyncIterator[Event]:
    """Make one model call and carry out the calls that it asks for.

    `tool`: the only one that the step carries.
    """
    if isinstance(state.begun, ModelCallIntended) and begun_of(state, state.role.kind) is None:
        yield given_up(state.begun)
    ask = _act_ask(bench, state, messages, tool)
    async for event in step_with_call(bench.client, bench.context.config, ask):
        yield event
    if isinstance(state.last, ModelCallDone):
        async for event in follow_reply(bench, state):
            yield event


async def follow_reply(bench: Bench, state: LoopState) -> AsyncIterator[Event]:
    """Do what the newest reply asks for and is not done, and answer what a crash has left.

    A call that may have changed something and was under way is not made again: its result says so.
    """
    turn = state.turn
    if turn is None:
        return
    said = turn.reply.message.content
    if state.plan and (update := progressed(state.plan, state.progress, said)):
        yield update
    if isinstance(state.begun, ModelCallIntended) and state.unanswered():
        yield given_up(state.begun)
    for call in state.open_calls:
        if _may_have_run(state, turn, call):
            interrupted = ToolResult(call.id, _INTERRUPTED, is_error=True, unsure=True)
            yield ToolCallDone(turn.reply.step, interrupted, 0.0)
    async for event in _tool_calls(bench, state, turn):
        yield event


def begun_of(state: LoopState, kind: StepKind) -> StepStarted | ModelCallIntended | None:
    """Return what a crash has left begun of a step of this kind."""
    return state.begun if state.begun is not None and state.begun.kind == kind else None


def first_number(state: LoopState, kind: StepKind) -> int:
    """Return the number of a step of this kind: that of one which a crash has left begun."""
    begun = begun_of(state, kind)
    return state.next_step if begun is None else begun.step


def _act_ask(bench: Bench, state: LoopState, messages: tuple[Message, ...], tool: str) -> Ask:
    """Return the model call of an act step, or the one that a crash has left without a reply."""
    config, history = bench.context.config, state.messages
    if (intended := state.under_way) is not None:
        tool, history = intended.tool, history[: len(history) - len(intended.messages)]
    own = own_steps(state, config)
    specs = state.surface.specs
    return Ask(
        bench.context.brief.run_id,
        first_number(state, state.role.kind),
        state.role.kind,
        state.role.conversation,
        messages,
        tuple(s for s in specs if (s.name == tool if tool else s.name not in own)),
        history,
        _settings(bench, state, tool),
        config.connections if state.role.kind == "act" and not tool else (),
        tool,
        begun_of(state, state.role.kind),
        bench.seconds_left,
    )


def _may_have_run(state: LoopState, turn: Turn, call: ToolCall) -> bool:
    """Whether a call that was begun may have changed something."""
    tool = state.surface.find(call.name)
    if tool is None or not tool.writes or isinstance(tool, Finish):
        return False
    return call in runnable(turn.reply) and not turn.has_ended and state.refusal(call) is None


def _settings(bench: Bench, state: LoopState, tool: str) -> StepConfig:
    config, brief = bench.context.config, bench.context.brief
    settings = config.tool_steps.get(tool, config.steps[state.role.kind])
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
            if call.id in state.decided:
                continue
            async for asked in bench.gate.ask(reply.step, call, state.surface, state.asked):
                yield asked
        for call in batch:
            if call not in state.open_calls:
                yield ToolCallIntended(reply.step, call)
        for carried in await _carry_out_allowed(bench, state, batch):
            ends_early = carried.output.ends_run and any(r.is_error for r in turn.results)
            done = replace(carried, output=_TOO_EARLY) if ends_early else carried
            async for event in _result(bench, state, reply.step, done):
                yield event
    async for event in _refuse_rest(bench, state, turn):
        yield event


async def _refuse_rest(bench: Bench, state: LoopState, turn: Turn) -> AsyncIterator[Event]:
    reply = turn.reply
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
    said = {call.id: state.refusal(call) for call in batch}
    allowed = [call for call in batch if said[call.id] is None]
    carried = iter(await carry_out(allowed, state.surface, bench.context, bench.clock))
    return [
        next(carried) if given is None else Carried(call, refused(given), 0.0)
        for call, given in zip(batch, said.values(), strict=True)
    ]


async def _result(
    bench: Bench, state: LoopState, step: int, carried: Carried
) -> AsyncIterator[Event]:
    config, output, bounds = bench.context.config, carried.output, bench.context.bounds
    name = output_name(state.results + 1)
    limit = bounds.read_cap if output.page else bounds.output_cap
    content = cap(output.text, limit, name if output.log else "")
    if output.log and len(output.text) > config.summarise_above:
        number = state.next_step
        ask = Ask(
            bench.context.brief.run_id,
            number,
            "summary",
            f"summary-{number}",
            shortening(output.text),
            seconds=bench.seconds_left,
        )
        async for event in step_with_call(bench.client, config, ask):
            yield event
        reply = state.last
        if isinstance(reply, ModelCallDone) and not cut(reply):
            summary = reply.message.content.strip()
            if summary:
                content = _summarised(output.text, summary, limit, name)
    full = output.text[:_MOST_KEPT] if output.log and content.elided else ""
    result = ToolResult(
        carried.call.id,
        content.text,
        output.is_error,
        content.elided,
        output.ends_run,
        full,
        output.unsure,
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
