"""Hand-made parts for the service room: nothing here starts a process or a server."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from turnout.agent.approval import Approver
from turnout.agent.base import Brief
from turnout.agent.review import ReviewSubject
from turnout.core.events import (
    Entry,
    Event,
    Explained,
    LoopEnded,
    Reviewed,
    StepStarted,
)
from turnout.core.ids import RunId
from turnout.core.runs import Connection, FileChange, Patch, TestReport
from turnout.core.spend.rates import MachineRates
from turnout.core.tasks import Task
from turnout.errors import ModelUnavailableError, SandboxError
from turnout.runs.intake import Compare, compare_nothing
from turnout.runs.ports import ModelAccess, StrategyName
from turnout.runs.service import RunService
from turnout.runs.stop import Stop
from turnout.runs.summary import RunResult
from turnout.runs.worker import Effort, RunEgress, Workshop
from turnout.sandbox.base import (
    BaseRef,
    BaseSpec,
    Capabilities,
    Egress,
    HostRule,
    Limits,
    PatchResult,
    SandboxUsage,
)
from turnout.sandbox.repository import Resolved
from turnout.testing.clock import FrozenClock
from turnout.testing.stores import MemoryRecordStore

COMMIT = "a" * 40
TASK = Task("test_pages fails; fix the code", "/repositories/pages")
DIFF = b"diff --git a/pages.py b/pages.py\n--- a/pages.py\n+++ b/pages.py\n@@ -1 +1 @@\n-a\n+b\n"
PATCH = Patch(DIFF, (FileChange("pages.py", "modified", 1, 1),))
EGRESS = RunEgress(Egress((HostRule("work.example"),)), Egress((HostRule("tests.example"),)))
NO_PATCH = Patch(b"", ())
DONE = LoopEnded("answered", "The model answered.", "It was an off-by-one.")


def report_of(
    passed: Sequence[str] = (), failed: Sequence[str] = (), **fields: object
) -> TestReport:
    """One run of the tests, with the exit status that goes with it."""
    given = {"exit_code": 1 if failed else 0, "seconds": 1.0, "output": "", **fields}
    return TestReport("pytest -q", passed=tuple(passed), failed=tuple(failed), **given)


FAILING = report_of(["t.py::a"], ["t.py::b"])
PASSING = report_of(["t.py::a", "t.py::b"])


@dataclass
class Box:
    """A sandbox that only says what was done with it."""

    driver: "Driver"
    run_id: RunId
    reaches: str
    """The first host that it may reach, or nothing."""
    did: list[str] = field(default_factory=list)
    isolation: str = "namespaces"

    def connections(self) -> tuple[Connection, ...]:
        """Return what the driver says was asked for while the model worked."""
        return tuple(self.driver.asked) if self.reaches == "work.example" else ()

    async def usage(self) -> SandboxUsage:
        """Return some figures."""
        return SandboxUsage(1.5, 64 << 20, 60.0, 4096, 30.0)

    async def kill_all(self) -> None:
        """Note it."""
        self.did.append("kill_all")

    async def diff(self) -> Patch:
        """Return the driver's patch, or raise its error."""
        self.did.append("diff")
        if self.driver.diff_error:
            raise self.driver.diff_error
        return self.driver.patches.pop(0) if self.driver.patches else self.driver.patch

    async def apply_patch(self, patch: bytes) -> PatchResult:
        """Apply or refuse, as the driver was told."""
        self.did.append("apply_patch")
        return PatchResult(self.driver.applies, (), "" if self.driver.applies else "hunk 1 failed")

    async def close(self) -> None:
        """Note it."""
        self.did.append("close")


@dataclass
class Driver:
    """Makes boxes, and remembers them."""

    patch: Patch = PATCH
    patches: list[Patch] = field(default_factory=list)
    """Of the first attempts; `patch` is that of all others."""
    diff_error: SandboxError | None = None
    applies: bool = True
    usable: bool = True
    prepare_error: Exception | None = None
    isolation: str = "namespaces"
    asked: list[Connection] = field(default_factory=list)
    specs: list[BaseSpec] = field(default_factory=list)
    boxes: list[Box] = field(default_factory=list)
    name: str = "fake"

    async def probe(self) -> Capabilities:
        """Return one wall that holds or not."""
        facts = (("bubblewrap", self.usable, "" if self.usable else "apt install bubblewrap"),)
        return Capabilities("fake", self.usable, "namespaces", facts)

    async def prepare(self, spec: BaseSpec) -> BaseRef:
        """Return a base with what changed manifests declare, or raise the error."""
        if self.prepare_error:
            raise self.prepare_error
        self.specs.append(spec)
        return BaseRef("base", COMMIT, tuple(text for _, text in spec.manifests))

    async def create(
        self, run_id: RunId, base: BaseRef, limits: Limits, *, egress: Egress, layer: object = None
    ) -> Box:
        """Return a new box; there is never more than one open."""
        assert all("close" in box.did for box in self.boxes), "one sandbox at a time"
        reaches = egress.rules[0].host if egress.rules else ""
        self.boxes.append(Box(self, run_id, reaches, isolation=self.isolation))
        return self.boxes[-1]


@dataclass
class Suite:
    """Reports what it was told to, one run after the other."""

    reports: list[TestReport]
    detected: str | None = "pytest -q"
    test_files: tuple[str, ...] = ("t.py",)
    steered: tuple[str, ...] = ()
    declares: tuple[tuple[str, str], ...] = ()

    def may_declare(self, paths: Sequence[str]) -> bool:
        """Whether it was told of such a file."""
        return bool(self.declares)

    async def manifests(self, sandbox: Box, paths: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """Return what it was told to."""
        return self.declares

    async def command(self, sandbox: Box) -> str | None:
        """Return what was to be detected."""
        return self.detected

    async def files(self, sandbox: Box) -> tuple[str, ...]:
        """Return what was to be found."""
        return self.test_files

    async def steering(
        self, sandbox: Box, command: str, paths: Sequence[str]
    ) -> dict[str, str | None]:
        """Read another thing from the files that are to be steered once a patch was applied."""
        return {path: str("apply_patch" in sandbox.did) for path in paths if path in self.steered}

    async def run(self, sandbox: Box, command: str) -> TestReport:
        """Return the next report."""
        sandbox.did.append("tests")
        return self.reports.pop(0)


@dataclass
class Agent:
    """Yields the events it was given; a function among them is called first."""

    events: Sequence[Event | Callable[[], object]] = (DONE,)
    explanations: int = 0
    next_step: int = 0

    turns: Sequence[Sequence[Event | Callable[[], object]]] = ()
    """Events of the second attempt and of those after it."""
    reviews: Sequence[Reviewed] = ()
    """What the first review says, and those after it."""
    strategies: list[str] = field(default_factory=list)
    briefs: list[Brief] = field(default_factory=list)
    subjects: list[ReviewSubject] = field(default_factory=list)

    def strategy(self, name: str, client: object, sandbox: Box, approver: Approver) -> "Agent":
        """Return itself."""
        self.strategies.append(name)
        return self

    async def review(
        self,
        client: object,
        sandbox: Box,
        subject: ReviewSubject,
        approver: Approver,
        record: Sequence[Event] = (),
    ) -> AsyncIterator[Event]:
        """Say what it was given, in a step of its own."""
        self.subjects.append(subject)
        yield StepStarted(subject.brief.first_step, "review", "quality")
        yield self.reviews[len(self.subjects) - 1]

    async def run(self, brief: Brief) -> AsyncIterator[Event]:
        """Yield, call or raise what it was given."""
        self.briefs.append(brief)
        for event in (self.events, *self.turns)[len(self.briefs) - 1]:
            if isinstance(event, Exception):
                raise event
            if callable(event):
                await event()
            else:
                yield event

    async def explain(self, client: object, subject: object) -> AsyncIterator[Event]:
        """Explain without a model, and count it."""
        self.explanations += 1
        self.next_step = subject.step
        yield Explained("Counted from 1, not from 0.")


@dataclass
class Models:
    """Ready at once, or not at all."""

    error: ModelUnavailableError | None = None
    strategy: StrategyName = "loop"
    escalated: StrategyName | None = None

    async def open(self, report: Callable[[str], None]) -> ModelAccess:
        """Return access without a client, or raise the error."""
        report("asking the models")
        if self.error:
            raise self.error
        return ModelAccess(None, self.strategy, escalated=self.escalated)


@dataclass
class Owners:
    """Remembers which runs are being worked on."""

    held: list[RunId] = field(default_factory=list)

    @contextmanager
    def holding(self, run_id: RunId) -> Iterator[bool]:
        """Hold a run."""
        self.held.append(run_id)
        yield True
        self.held.remove(run_id)


@dataclass
class Room:
    """The service with its parts, and what came out of it."""

    driver: Driver = field(default_factory=Driver)
    agent: Agent = field(default_factory=Agent)
    suite: Suite = field(default_factory=lambda: Suite([FAILING, PASSING]))
    models: Models = field(default_factory=Models)
    resolved: Resolved = field(default_factory=lambda: Resolved(COMMIT))
    store: MemoryRecordStore = field(default_factory=MemoryRecordStore)
    owners: Owners = field(default_factory=Owners)
    stop: Stop = field(default_factory=Stop)
    clock: FrozenClock = field(default_factory=FrozenClock)
    effort: Effort = field(default_factory=Effort)
    approver: Approver | None = None
    compare: Compare = compare_nothing
    rates: MachineRates = field(default_factory=MachineRates)
    entries: list[Entry] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def service(self) -> RunService:
        """Return the service on these parts."""

        async def resolve(repository: str, base: str) -> Resolved:
            return self.resolved

        def report(text: str) -> None:
            self.said.append(text)

        async def egress() -> RunEgress:
            return EGRESS

        shop = Workshop(
            self.driver,
            self.agent,
            self.suite,
            Limits(),
            self.clock,
            self.owners,
            egress,
            self.effort,
            compare=self.compare,
            rates=self.rates,
        )
        return RunService(self.store, shop, self.models, resolve, report)

    async def run(self, task: Task = TASK) -> RunResult:
        """Run a task to its end and return the result."""
        result = None
        async for item in self.service().run(task, self.stop, self.approver):
            if isinstance(item, RunResult):
                result = item
            else:
                self.entries.append(item)
        assert result is not None
        return result

    @property
    def types(self) -> list[str]:
        """The types of all events, in order."""
        return [entry.event.type for entry in self.entries]
