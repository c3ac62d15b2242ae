"""The loop: a plan, then act steps until the model is done or a rule ends it."""

from collections.abc import AsyncIterator

from turnout.agent.base import AgentConfig, Brief, ModelClient
from turnout.agent.steps import Bench, act_step, list_some, opening_messages, plan_step
from turnout.agent.stop import call_failure, judge
from turnout.agent.tools.base import ToolContext
from turnout.agent.tools.surfaces import SURFACES
from turnout.core.clock import Clock
from turnout.core.events import Event, LoopEnded, ModelCallFailed
from turnout.core.messages import UserMessage
from turnout.sandbox.base import Sandbox

__all__ = ["LoopStrategy"]


class LoopStrategy:
    """Works on a brief by tool calls; the whole state of the loop is a fold of what it yielded."""

    def __init__(
        self, client: ModelClient, sandbox: Sandbox, config: AgentConfig, clock: Clock
    ) -> None:
        self._client = client
        self._sandbox = sandbox
        self._config = config
        self._clock = clock

    async def run(self, brief: Brief) -> AsyncIterator[Event]:
        """Work, yielding each event before going on; the last one is `LoopEnded`."""
        events: list[Event] = []
        async for event in self._work(brief, events):
            events.append(event)
            yield event

    async def _work(self, brief: Brief, events: list[Event]) -> AsyncIterator[Event]:
        context = ToolContext(self._sandbox, brief, self._config)
        paths = await list_some(context)
        bench = Bench(self._client, SURFACES[brief.surface], context, self._clock, paths)
        async for event in plan_step(bench, events):
            yield event
        if isinstance(failed := events[-1], ModelCallFailed):
            yield call_failure(failed)
            return
        messages = opening_messages(bench, events)
        while True:
            async for event in act_step(bench, events, messages):
                yield event
            verdict = judge(bench.surface, self._config, events)
            if isinstance(verdict, LoopEnded):
                yield verdict
                return
            messages = (UserMessage(verdict.text),) if verdict else ()
