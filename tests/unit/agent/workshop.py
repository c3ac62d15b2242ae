"""A run of the loop in a scripted sandbox, for tests of the agent."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from turnout.agent.approval import Approver
from turnout.agent.base import AgentConfig, Brief
from turnout.agent.loop import LoopStrategy
from turnout.agent.servers import OpenServers
from turnout.core.events import Event, LoopEnded, ToolCallDone
from turnout.core.ids import RunId
from turnout.core.tasks import SurfaceName
from turnout.testing.clock import FrozenClock
from turnout.testing.model_client import ScriptedModelClient
from turnout.testing.sandbox import ScriptedSandbox

RUN = RunId("run-000000000001")


@dataclass
class Finished:
    """A run of the loop that has ended."""

    events: Sequence[Event]
    sandbox: ScriptedSandbox

    @property
    def end(self) -> LoopEnded:
        """The last event."""
        last = self.events[-1]
        assert isinstance(last, LoopEnded)
        return last

    @property
    def results(self) -> list[str]:
        """What the model read as results of its calls, in order."""
        return [e.result.content for e in self.events if isinstance(e, ToolCallDone)]

    def text(self, path: str) -> str:
        """Return a file of the workspace as it was left."""
        return self.sandbox.files[path].data.decode()


@dataclass(frozen=True)
class Workshop:
    """What a run of the loop is made of."""

    files: dict[str, str] = field(default_factory=lambda: {"a.py": "x = 1\n"})
    surface: SurfaceName = "guide"
    config: AgentConfig = field(default_factory=AgentConfig)
    script: Callable[[ScriptedSandbox], None] = lambda _: None
    sandbox: type[ScriptedSandbox] = ScriptedSandbox
    servers: OpenServers | None = None
    approver: Approver | None = None

    async def events(
        self, client: ScriptedModelClient, record: Sequence[Event] = ()
    ) -> AsyncIterator[tuple[Event, ScriptedSandbox]]:
        """Yield each event of the loop, and the sandbox as it is then."""
        sandbox = self.sandbox(self.files, run_id=RUN)
        self.script(sandbox)
        strategy = LoopStrategy(
            client,
            sandbox,
            self.config,
            FrozenClock(),
            approver=self.approver,
            servers=self.servers,
        )
        brief = Brief(RUN, "Fix a.py.", self.surface, "pytest", None, ("test_a.py",))
        async for event in strategy.run(brief, record):
            yield event, sandbox

    async def work(self, client: ScriptedModelClient, record: Sequence[Event] = ()) -> Finished:
        """Run the loop to its end, from where a record of it ends."""
        seen = [pair async for pair in self.events(client, record)]
        return Finished([event for event, _ in seen], seen[-1][1])
