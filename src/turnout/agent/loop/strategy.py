"""The loop: a plan, then act steps until the model is done or a rule ends it."""

from collections.abc import AsyncIterator, Iterable

from turnout.agent.approval import Approver, Gate, Unattended
from turnout.agent.base import AgentConfig, Brief, ModelClient
from turnout.agent.guidance import read_guidance
from turnout.agent.loop.condense import condense, is_overflow, is_tight
from turnout.agent.loop.planning import finished
from turnout.agent.loop.rules import call_failure, judge
from turnout.agent.loop.state import LoopState, Role, main_of
from turnout.agent.loop.steps import (
    Bench,
    act_step,
    list_some,
    opening_messages,
    plan_step,
    settle_calls,
)
from turnout.agent.tools.base import ToolContext
from turnout.agent.tools.surfaces import surface_of
from turnout.core.clock import Clock
from turnout.core.events import Event, LoopEnded, ModelCallFailed
from turnout.core.messages import UserMessage
from turnout.sandbox.base import Sandbox

__all__ = ["LoopStrategy"]


class LoopStrategy:
    """Works on a brief by tool calls; the whole state of the loop is a fold of what it yielded."""

    def __init__(
        self,
        client: ModelClient,
        sandbox: Sandbox,
        config: AgentConfig,
        clock: Clock,
        role: Role | None = None,
        approver: Approver | None = None,
    ) -> None:
        self._client = client
        self._sandbox = sandbox
        self._config = config
        self._clock = clock
        self._role = role
        self._approver = approver or Unattended()

    async def run(self, brief: Brief, record: Iterable[Event] = ()) -> AsyncIterator[Event]:
        """Work, yielding each event before going on; the last one is `LoopEnded`.

        `record`: what an earlier service has put on record of this loop, which then goes on.
        """
        role = self._role or Role(conversation=main_of(brief.attempt))
        extra = self._config.extra_tools if role.kind == "act" else ()
        surface = surface_of(brief.surface, extra)
        state = LoopState(surface, role, brief.first_step, brief.spent)
        for event in record:
            state.apply(event)
        context = ToolContext(self._sandbox, brief, self._config, state.output)
        guidance = await read_guidance(self._sandbox)
        gate = Gate(self._config.approvals, self._approver, self._sandbox, self._clock)
        bench = Bench(self._client, context, self._clock, gate, await list_some(context), guidance)
        async for event in self._work(bench, state):
            state.apply(event)
            yield event

    async def _work(self, bench: Bench, state: LoopState) -> AsyncIterator[Event]:
        started = self._clock.monotonic() - bench.context.brief.seconds
        async for event in self._begin(bench, state):
            yield event
            if isinstance(event, LoopEnded):
                return
        messages = () if state.messages else opening_messages(bench, state)
        # A record may end between a reply and what follows from it.
        stepped, tool = state.awaits_verdict, ""
        while True:
            if not stepped:
                async for event in act_step(bench, state, messages, tool):
                    yield event
            stepped = False
            overflow = is_overflow(state.last)
            seconds = self._clock.monotonic() - started - bench.gate.waited
            verdict = None if overflow else judge(state, self._config, seconds)
            if isinstance(verdict, LoopEnded):
                async for event in _ended(state, verdict):
                    yield event
                return
            messages = (UserMessage(verdict.text),) if verdict else ()
            tool = verdict.tool if verdict else ""
            if overflow or is_tight(state, self._config):
                async for event in condense(bench, state):
                    yield event
                    if isinstance(event, LoopEnded):
                        return

    async def _begin(self, bench: Bench, state: LoopState) -> AsyncIterator[Event]:
        """Settle what a crash has left, or make the plan; a plan that nobody makes is the end."""
        async for event in settle_calls(bench, state):
            yield event
        if not state.messages and state.role.plans and state.plan is None:
            async for event in plan_step(bench, state):
                yield event
            if isinstance(state.last, ModelCallFailed):
                yield call_failure(state.last)


async def _ended(state: LoopState, end: LoopEnded) -> AsyncIterator[Event]:
    if end.outcome == "answered" and (done := finished(state.progress)) is not None:
        yield done
    yield end
