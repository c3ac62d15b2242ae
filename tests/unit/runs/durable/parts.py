"""A service of fakes around the real loop: its model counts, and remembers what it has answered."""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace

from tests.unit.runs.parts import COMMIT, Suite, report_of

from turnout.agent.approval import Approver
from turnout.agent.base import AgentConfig, ModelClient
from turnout.agent.explain import explain
from turnout.agent.loop import LoopStrategy
from turnout.agent.review import ReviewSubject, review
from turnout.agent.tools.surfaces import surface_of
from turnout.core.events import Entry, Event, ModelCallIntended
from turnout.core.ids import RunId
from turnout.core.inference import ModelReply, ModelRequest
from turnout.core.runs import TestReport
from turnout.core.service.orders import Order, OrderedRun
from turnout.core.service.turns import Standing
from turnout.core.tasks import SurfaceName, Task
from turnout.runs.durable.segment import Outfit, Segments
from turnout.runs.ports import Explanation, ModelAccess, StrategyName
from turnout.runs.stop import Stop
from turnout.runs.worker import Effort, RunEgress, Workshop
from turnout.sandbox.base import Limits, Sandbox
from turnout.sandbox.repository import Resolved
from turnout.testing.clock import FrozenClock
from turnout.testing.memory.orders import MemoryOrders
from turnout.testing.model_client import ScriptedModelClient
from turnout.testing.model_server import Call, Turn
from turnout.testing.sandbox.driver import ScriptedDriver
from turnout.testing.stores import MemoryRecordStore

RUN = RunId("run-1")
ORDER = Order(Task("Count to 3.", "shop", surface="files"), "red", "key")
GREEN = report_of(["t.py::a"])


class Remembering:
    """A model that writes one file a step, behind a gateway that gives answers again."""

    def __init__(self, goal: int = 3, *, lazy: bool = False, reads: bool = False) -> None:
        """Do nothing in a first attempt where it is `lazy`; review what it `reads` first."""
        self.asked: list[str] = []
        """Keys in the order in which the model itself was asked."""
        self._goal = goal
        self._lazy = lazy
        self._reads = reads
        self._replies: dict[str, ModelReply] = {}

    def as_of(self, events: Sequence[Event]) -> "Remembering":
        """Return the model behind a gateway that knows the calls of a record, answered or not."""
        known = {e.idempotency_key for e in events if isinstance(e, ModelCallIntended)}
        other = Remembering(self._goal, lazy=self._lazy, reads=self._reads)
        other._replies = {key: reply for key, reply in self._replies.items() if key in known}
        return other

    async def call(self, request: ModelRequest) -> ModelReply:
        """Answer as before, or write the next file, or say that all are there."""
        if request.idempotency_key in self._replies:
            return self._replies[request.idempotency_key]
        self.asked.append(request.idempotency_key)
        others = {"review": self._review(request)}
        client = ScriptedModelClient(self._act, others=others)
        reply = await client.call(request)
        self._replies[request.idempotency_key] = reply
        return reply

    def _review(self, request: ModelRequest) -> Turn:
        results = [message for message in request.messages if message.role == "tool"]
        if self._reads and len(results) < 2:
            return Turn(calls=(Call("read_file", {"path": "a.py"}, f"r{len(results)}"),))
        return Turn('{"verdict": "approve", "summary": "fine"}')

    def _act(self, request: ModelRequest) -> Turn:
        if self._lazy and not any("Attempt 1" in each.content for each in request.messages):
            return Turn("Nothing is to be done.")
        results = [message for message in request.messages if message.role == "tool"]
        done = sum(not message.content.startswith("Interrupted") for message in results)
        if done >= self._goal:
            return Turn("All is written.")
        arguments = {"path": f"n{done}.txt", "content": "x\n"}
        return Turn(calls=(Call("write_file", arguments, f"c{len(request.messages)}"),))


@dataclass(frozen=True)
class Working:
    """The agent, on the settings of a test."""

    config: AgentConfig
    clock: FrozenClock

    def strategy(
        self, name: StrategyName, client: ModelClient, sandbox: Sandbox, approver: Approver
    ) -> LoopStrategy:
        """Return the loop."""
        assert name == "loop"
        return LoopStrategy(client, sandbox, self.config, self.clock, approver=approver)

    def writes(self, surface: SurfaceName, tool: str) -> bool:
        """Whether a tool writes."""
        found = surface_of(surface).find(tool)
        return found is None or found.writes

    def review(
        self,
        client: ModelClient,
        sandbox: Sandbox,
        subject: ReviewSubject,
        approver: Approver,
        record: Iterable[Event] = (),
    ) -> AsyncIterator[Event]:
        """Review."""
        return review(client, sandbox, self.config, self.clock, subject, approver, record)

    def explain(self, client: ModelClient, subject: Explanation) -> AsyncIterator[Event]:
        """Explain."""
        return explain(
            client,
            self.config,
            run_id=subject.run_id,
            step=subject.step,
            prompt=subject.prompt,
            patch=subject.patch,
            tests_after=subject.tests_after,
        )


class Nobody:
    """Owns no run."""

    def holding(self, _run_id: RunId) -> AbstractContextManager[bool]:
        """Hold it all the same."""
        return nullcontext(True)


class Green(Suite):
    """Finds the tests green, however often they are run."""

    def __init__(self) -> None:
        super().__init__([])
        self.runs = 0

    async def run(self, _sandbox: Sandbox, _command: str) -> TestReport:
        """Count it."""
        self.runs += 1
        return GREEN


async def no_egress() -> RunEgress:
    """Let nothing out."""
    return RunEgress()


async def resolve(_repository: str, _base: str) -> Resolved:
    """Find every commit."""
    return Resolved(COMMIT)


def first(standing: Standing) -> RunId | None:
    """Pick what comes first."""
    return standing.queued[0].run_id if standing.queued else None


@dataclass
class House:
    """The parts of a service whose processes come and go; what it keeps stays."""

    config: AgentConfig = field(default_factory=AgentConfig)
    effort: Effort = field(default_factory=Effort)
    model: Remembering = field(default_factory=Remembering)
    clock: FrozenClock = field(default_factory=FrozenClock)
    driver: ScriptedDriver = field(default_factory=lambda: ScriptedDriver({"a.py": "a = 1\n"}))
    suite: Green = field(default_factory=Green)
    records: MemoryRecordStore = field(default_factory=MemoryRecordStore)
    on_entry: Callable[[Entry], None] = lambda _: None
    wanted: Order = ORDER

    def __post_init__(self) -> None:
        self.orders = MemoryOrders(self.records, self.clock.monotonic)

    def segments(self) -> Segments:
        """Return what works on runs."""
        shop = Workshop(
            self.driver,
            Working(self.config, self.clock),
            self.suite,
            Limits(),
            self.clock,
            Nobody(),
            no_egress,
            self.effort,
        )

        @asynccontextmanager
        async def outfit(_order: Order) -> AsyncIterator[Outfit]:
            yield Outfit(shop, ModelAccess(self.model, "loop"))

        def locate(name: str) -> str:
            return f"/repositories/{name}"

        return Segments(
            self.orders,
            self.records,
            outfit,
            resolve,
            locate,
            self.clock,
            self.on_entry,
            hide=lambda text: text.replace("/repositories/", ""),
        )

    async def order(self, order: Order | None = None) -> None:
        """Take the one order in."""
        await self.orders.submit(RUN, order or self.wanted, self.clock.now())

    async def segment(self, stop: Stop | None = None) -> OrderedRun:
        """Have the next segment worked on to its end, and return what the run is then."""
        run = await self.orders.claim("w", first, self.clock.now())
        assert run is not None
        await self.segments().work(run, stop or Stop())
        return await self.run()

    async def run(self) -> OrderedRun:
        """Return the run as it is."""
        return await self.orders.get("red", RUN)

    async def events(self) -> Sequence[Event]:
        """Return its record."""
        return [entry.event for entry in await self.records.entries(RUN)]

    async def cut(self, at: int) -> "House":
        """Return a house whose process died after so many events, and whose run is queued."""
        return await self.with_record((await self.events())[:at])

    async def with_record(self, events: Sequence[Event]) -> "House":
        """Return a house whose process died with these events on record."""
        model = self.model.as_of(events)
        other = replace(self, records=MemoryRecordStore(), suite=Green(), model=model)
        await other.order()
        if events:
            run = await other.orders.claim("dead", first, self.clock.now())
            assert run is not None
            await other.records.append_all(RUN, run.epoch, events, self.clock.now())
            await other.orders.leave("dead")
        return other
