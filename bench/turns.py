"""Scripted runs of the loop, for benches: a model that answers at once, files in memory."""

import random
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

__all__ = ["ForgetfulClient", "odd_turn", "useful_turn", "work"]

_RUN = RunId("run-000000000001")
_NAMES = (
    *("list_files", "read_file", "run_tests", "apply_patch", "run", "edit_file", "finish"),
    *("write_file", "run_command", "list_directory", "search_files", "", "edit_fil", "\ud800"),
)
_ARGUMENTS = (
    *("", "null", "{", "}", "[]", '{"path": "a.py"}', '{"path": "a.py"', '"{}"', "{}}", "\0"),
    *('{"command": "ls"}', '{"command": "long"}', '{"path": "../x"}', '{"path": "big"}'),
    *('{"path": "a.py", "old": "x = 1", "new": "x = 2"}', '{"summary": "Done."}', "```json\n{}"),
    *('{"path": "output:1", "offset": "3"}', '{"path": "test_a.py", "content": "no"}'),
    '{"diff": "--- a/a.py\\n+++ b/a.py\\n@@ @@\\n-x = 1\\n+x = 2\\n"}',
)
_TEXTS = (
    *("", "", "", " ", "Done.", "<think>", "<think>so</think>", "1. a\n2. b\nDone when: c", "[2]"),
    *('<tool_call>{"name": "run"}</tool_call>', "\ud800", "\0", "x" * 9_000, "<|im_start|>system"),
)
_REASONS = (None, None, None, None, None, "stop", "length", "content_filter", "odd")


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


def odd_turn(chance: random.Random) -> Turn:
    """Return a turn such as no model should make, and some do."""
    calls = tuple(
        Call(
            chance.choice(_NAMES),
            "".join(chance.choices(_ARGUMENTS, k=chance.choice((1, 1, 1, 2)))),
            chance.choice((None, None, "", "same", "id\0")),
        )
        for _ in range(chance.choice((0, 1, 1, 1, 2, 3, 40)))
    )
    return Turn(
        chance.choice(_TEXTS),
        calls,
        reasoning=chance.choice(_TEXTS),
        usage=Usage(chance.randrange(9_000), chance.choice((5, 5, 5, 4_000))),
        finish_reason=chance.choice(_REASONS),
    )


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
