"""The loop: a plan, then act steps until the model is done or a rule ends it."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import Final

from turnout.agent.approval import Approver, Gate, Unattended
from turnout.agent.base import AgentConfig, Brief, ModelClient
from turnout.agent.guidance import read_guidance
from turnout.agent.loop.condense import condense, is_overflow, is_tight
from turnout.agent.loop.planning import finished
from turnout.agent.loop.rules import call_failure, is_conflict, judge
from turnout.agent.loop.state import LoopState, Role, main_of
from turnout.agent.loop.steps import (
    Bench,
    act_step,
    follow_reply,
    list_some,
    opening_messages,
    plan_step,
)
from turnout.agent.servers import OpenServers, Served, served_tools
from turnout.agent.tools.base import ToolContext
from turnout.agent.tools.surfaces import surface_of
from turnout.core.clock import Clock
from turnout.core.events import Event, LoopEnded
from turnout.core.messages import UserMessage
from turnout.sandbox.base import Sandbox

__all__ = ["LoopStrategy"]

_PLANS: Final = 2
"""Plans that are asked for, where the first was sent before a crash and cannot be had again."""


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
        *,
        servers: OpenServers | None = None,
    ) -> None:
        """`servers`: opens the MCP servers of the configuration; None: there are none."""
        self._client = client
        self._sandbox = sandbox
        self._config = config
        self._clock = clock
        self._role = role
        self._approver = approver or Unattended()
        self._servers = servers

    async def run(self, brief: Brief, record: Iterable[Event] = ()) -> AsyncIterator[Event]:
        """Work, yielding each event before going on; the last one is `LoopEnded`.

        `record`: the events of this loop that an earlier service has put on record, in a
        workspace that holds what they have changed; it goes on as if it had never stopped.
        """
        role = self._role or Role(conversation=main_of(brief.attempt))
        async with AsyncExitStack() as stack:
            served = await self._serve(stack) if role.kind == "act" else Served()
            for notice in served.notices:
                yield notice
            extra = self._config.extra_tools if role.kind == "act" else ()
            surface = surface_of(brief.surface, extra)
            surface = replace(surface, tools=(*surface.tools, *served.tools))
            state = LoopState(surface, role, brief.first_step, brief.spent)
            for event in record:
                state.apply(event)
            async for event in self._work(await self._bench(brief, state), state):
                state.apply(event)
                yield event

    async def _serve(self, stack: AsyncExitStack) -> Served:
        """Start the MCP servers in the sandbox; they end with the work."""
        if self._servers is None:
            return Served()
        servers = await stack.enter_async_context(self._servers(self._sandbox))
        return await served_tools(servers, self._config.mcp)

    async def _bench(self, brief: Brief, state: LoopState) -> Bench:
        window = partial(_window_of, state)
        context = ToolContext(self._sandbox, brief, self._config, state.outputs.find, window)
        paths, guidance = await asyncio.gather(list_some(context), read_guidance(self._sandbox))
        gate = Gate(self._config.approvals, self._approver, self._sandbox, self._clock)
        started = self._clock.monotonic() - brief.seconds
        return Bench(self._client, context, self._clock, gate, paths, guidance, started)

    async def _work(self, bench: Bench, state: LoopState) -> AsyncIterator[Event]:
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
            overflow = is_overflow(state.failed)
            verdict = None if overflow else judge(state, self._config, bench.seconds)
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
        async for event in follow_reply(bench, state):
            yield event
        if state.messages or not state.role.plans or state.plan is not None:
            return
        for _ in range(_PLANS):
            if state.failed is None or is_conflict(state.failed):
                async for event in plan_step(bench, state):
                    yield event
        if state.failed is not None:
            yield call_failure(state.failed)


def _window_of(state: LoopState) -> int | None:
    return state.turn.reply.routing.context_tokens if state.turn else None


async def _ended(state: LoopState, end: LoopEnded) -> AsyncIterator[Event]:
    if end.outcome == "answered" and (done := finished(state.progress)) is not None:
        yield done
    yield end
