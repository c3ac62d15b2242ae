"""Scripted runs of the loop, for benches: a model that answers at once, files in memory."""

import time
from collections.abc import AsyncIterator, Callable, Sequence

from turnout.agent.base import AgentConfig, Brief
from turnout.agent.loop import LoopStrategy
from turnout.core.clock import SystemClock
from turnout.core.events import Event
from turnout.core.ids import RunId
from turnout.core.inference import ModelReply, ModelRequest
from turnout.core.tasks import SurfaceName
from turnout.core.usage import Usage
from turnout.testing.model_client import Answer, ScriptedModelClient
from turnout.testing.sandbox import ScriptedSandbox
from turnout.testing.turns import Call, Turn

__all__ = ["ForgetfulClient", "useful_turn", "work"]

_RUN = RunId("run-000000000001")


class ForgetfulClient:
    """A scripted client that keeps no request, and knows how long its model took."""

    def __init__(self, turns: Sequence[Answer]) -> None:
        self._client = ScriptedModelClient(*turns)
        self.seconds = 0.0
        """In all calls; reading the reply's JSON counts as the model's."""

    async def call(self, request: ModelRequest) -> ModelReply:
        """Make one model call."""
        started = time.perf_counter()
        try:
            return await self._client.call(request)
        finally:
            self._client.requests.clear()
            self.seconds += time.perf_counter() - started


def useful_turn(step: int, last: int) -> Callable[[ModelRequest], Turn]:
    """Return the answer of act call `step`: it reads, edits or runs, and finishes at `last`."""
    calls = (
        Call("read_file", {"path": f"pkg/{step % 40}.py"}),
        Call("edit_file", {"path": "a.py", "old": f"x = {step - 3}\n", "new": f"x = {step}\n"}),
        Call("run", {"command": f"pytest -k {step}"}),
    )
    call = Call("finish", {"summary": "Done."}) if step == last else calls[step % 3]

    def answer(request: ModelRequest) -> Turn:
        said = sum(len(message.content) for message in request.messages)
        return Turn(f"Step {step}.", (call,), usage=Usage(said // 4, 40))

    return answer


async def work(
    client: ForgetfulClient | ScriptedModelClient,
    sandbox: ScriptedSandbox,
    surface: SurfaceName,
    config: AgentConfig,
) -> AsyncIterator[Event]:
    """Yield the events of one run."""
    brief = Brief(_RUN, "Fix a.py.", surface, "pytest", None, ("test_a.py",))
    async for event in LoopStrategy(client, sandbox, config, SystemClock()).run(brief):
        yield event
