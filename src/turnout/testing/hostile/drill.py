"""One run of the loop under odd turns, and what came of it."""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from turnout.agent.base import AgentConfig, Brief
from turnout.agent.loop import LoopStrategy
from turnout.agent.wire import encode_request
from turnout.core.clock import SystemClock
from turnout.core.events import Event, LoopEnded
from turnout.core.ids import RunId
from turnout.core.inference import ModelRequest
from turnout.core.tasks import SurfaceName
from turnout.sandbox.base import Sandbox
from turnout.testing.hostile.turns import ODD_ARGUMENTS, odd_turn
from turnout.testing.model_client import ScriptedModelClient
from turnout.testing.recorded import history_faults
from turnout.testing.turns import Turn

__all__ = ["Drilled", "drill"]

_SURFACES: Final[Sequence[SurfaceName]] = ("guide", "shell", "files")
_STEPS: Final = 12
_RUN: Final = RunId("run-000000000001")
_TESTS: Final = "cat test_a.py"


@dataclass(frozen=True, slots=True)
class Drilled:
    """A run that is over."""

    events: Sequence[Event]
    turns: int
    """Act calls that were answered."""
    invalid_histories: int
    """Requests whose calls did not have one result each."""

    @property
    def end(self) -> LoopEnded | None:
        """How it ended; None where the loop did not say."""
        last = self.events[-1] if self.events else None
        return last if isinstance(last, LoopEnded) else None


async def drill(
    chance: random.Random,
    sandbox: Sandbox,
    arguments: Sequence[str] = ODD_ARGUMENTS,
    *,
    command_timeout: float = 5.0,
) -> Drilled:
    """Work in a sandbox as odd turns say; `chance` alone decides which these are."""
    requests: list[ModelRequest] = []

    def answer(request: ModelRequest) -> Turn:
        requests.append(request)
        return odd_turn(chance, arguments)

    summary = odd_turn(chance, arguments)
    client = ScriptedModelClient(*[answer] * _STEPS, others={"summary": summary})
    config = AgentConfig(
        max_steps=_STEPS,
        window=chance.choice((200, 100_000)),
        extra_tools=("search_files", "fetch_url"),
        command_timeout=command_timeout,
        test_timeout=command_timeout,
    )
    brief = Brief(_RUN, "Fix a.py.", chance.choice(_SURFACES), _TESTS, None, ("test_a.py",))
    strategy = LoopStrategy(client, sandbox, config, SystemClock())
    events = [event async for event in strategy.run(brief)]
    invalid = sum(bool(_faults(request)) for request in client.requests)
    return Drilled(events, len(requests), invalid)


def _faults(request: ModelRequest) -> tuple[str, ...]:
    return history_faults(json.loads(encode_request(request))["messages"])
