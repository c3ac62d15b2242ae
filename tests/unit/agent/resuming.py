"""Runs of the loop whose record is cut, and that go on from it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tests.unit.agent.workshop import RUN

from turnout.agent.approval import Approver
from turnout.agent.base import AgentConfig, Brief
from turnout.agent.loop import LoopStrategy
from turnout.agent.tools.surfaces import SURFACES
from turnout.agent.wire import encode_request
from turnout.core.events import Event, ToolCallDone, ToolCallIntended
from turnout.core.inference import ModelReply, ModelRequest
from turnout.core.tasks import SurfaceName
from turnout.errors import GatewayError
from turnout.sandbox.base import CommandResult
from turnout.testing.clock import FrozenClock
from turnout.testing.model_client import Answer, ScriptedModelClient
from turnout.testing.recorded import history_faults
from turnout.testing.sandbox import FakeFile, ScriptedSandbox, result
from turnout.testing.turns import Call, Turn

FILES = {"a.py": "x = 1\n", "b.py": "y = 1\n", "long.py": "z\n" * 2_000, "log": ""}


_SUMMARY = Turn("One test failed.")
_END = Turn("Done.", (Call("finish", {"summary": "Done."}),))


class Gateway:
    """A model behind a gateway, which answers a request as it did when it came before."""

    def __init__(self, turns: Sequence[Answer], summary: Answer = _SUMMARY) -> None:
        self._client = ScriptedModelClient(*turns, others={"summary": summary})
        self.known: dict[str, tuple[ModelRequest | None, ModelReply | GatewayError]] = {}
        self.changed: list[str] = []
        """Keys that came again with another request."""
        self.faults: list[str] = []
        """Of the histories that were sent."""

    async def call(self, request: ModelRequest) -> ModelReply:
        """Answer; only an answer that is none is not kept."""
        self.faults += history_faults(json.loads(encode_request(request))["messages"])
        known = self.known.get(request.idempotency_key)
        if known is None:
            known = request, await self._ask(request)
            self.known[request.idempotency_key] = known
        if known[0] not in (request, None):
            self.changed.append(request.idempotency_key)
        if isinstance(known[1], GatewayError):
            raise known[1]
        return known[1]

    async def _ask(self, request: ModelRequest) -> ModelReply | GatewayError:
        try:
            return await self._client.call(request)
        except GatewayError as error:
            return error
        except AssertionError:
            # A run that lost a result to a crash may take a step more than the script has.
            return await ScriptedModelClient(_END).call(replace(request, call_kind="act"))


@dataclass(frozen=True)
class Story:
    """A run whose record is cut."""

    turns: Sequence[Answer]
    surface: SurfaceName = "shell"
    config: AgentConfig = field(default_factory=AgentConfig)
    approver: Approver | None = None
    seconds: float = 0.0
    """Wall time of its work before."""

    async def told(
        self, gateway: Gateway, files: Mapping[str, FakeFile | str], record: Sequence[Event] = ()
    ) -> tuple[list[Event], list[dict[str, FakeFile]], ScriptedSandbox]:
        """Return what follows a record, the files as each event found them, and the sandbox."""
        sandbox = ScriptedSandbox(files, run_id=RUN)
        sandbox.answer("loud", lambda _: shout(sandbox))
        strategy = LoopStrategy(
            gateway, sandbox, self.config, FrozenClock(), approver=self.approver
        )
        brief = Brief(RUN, "Fix a.py.", self.surface, "pytest", None, ("test_a.py",))
        brief = replace(brief, seconds=self.seconds)
        events: list[Event] = []
        seen: list[dict[str, FakeFile]] = []
        async for event in strategy.run(brief, record):
            events.append(event)
            seen.append(dict(sandbox.files))
        return events, seen, sandbox


def shout(sandbox: ScriptedSandbox) -> CommandResult:
    """Print much, and leave a line in the log."""
    sandbox.files["log"] = FakeFile(sandbox.files["log"].data + b"x\n")
    return result(b"w" * 9_000, code=1)


def interrupted(record: Sequence[Event]) -> ToolCallIntended | None:
    """Return the call at the end of a record that may have been made, and has no result."""
    done = {event.result.call_id for event in record if isinstance(event, ToolCallDone)}
    writes = {t.spec.name for s in SURFACES.values() for t in s.tools if t.writes} - {"finish"}
    left = [
        event
        for event in record
        if isinstance(event, ToolCallIntended)
        and event.call.id not in done
        and event.call.name in writes
    ]
    return left[0] if left else None
