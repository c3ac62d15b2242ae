"""What the work is done with: the same for every run, and that of one run."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

from turnout.agent.approval import Approver
from turnout.core.clock import Clock
from turnout.core.events import Notice
from turnout.core.inference import Objective
from turnout.core.money import Micros
from turnout.core.secrecy.redactor import Redactor
from turnout.core.spend.rates import MachineRates
from turnout.core.tasks import Task
from turnout.runs.checkpoints.ports import Checkpoints, LocalCheckpoints
from turnout.runs.intake import Compare, compare_nothing
from turnout.runs.ports import Agent, ModelAccess, Owners, Suite
from turnout.runs.record import Recorder
from turnout.runs.stop import Stop
from turnout.runs.worker.metering import Meter
from turnout.runs.worker.past import Past
from turnout.sandbox.base import (
    NO_EGRESS,
    BaseRef,
    BaseSpec,
    Egress,
    LayerRef,
    Limits,
    Sandbox,
    SandboxDriver,
)
from turnout.sandbox.testrun import USUAL_TESTS, TestPaths

__all__ = ["Effort", "Job", "RunEgress", "Site", "Workshop"]


@dataclass(frozen=True, slots=True)
class RunEgress:
    """What a run's sandboxes may reach."""

    work: Egress = NO_EGRESS
    """While the model works."""
    tests: Egress = NO_EGRESS
    """While our own tests judge: never a secret, and no package that is not declared."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How far a run goes for a result."""

    attempts: int = 1
    """How often it may try, each time anew."""
    escalate_after: int = 1
    """Attempts that fail before act steps are routed for `quality`."""
    objective: Objective = "latency"
    """What act steps are routed for until then."""
    review: Literal["off", "annotate", "block"] = "off"
    max_spend: Micros | None = None
    max_seconds: float | None = None

    def objective_of(self, attempt: int) -> Objective:
        """Return what the act steps of an attempt, counted from 1, are routed for."""
        return self.objective if attempt <= self.escalate_after else "quality"


@dataclass(frozen=True, slots=True)
class Workshop:
    """What every run is worked on with."""

    driver: SandboxDriver
    agent: Agent
    suite: Suite
    limits: Limits
    clock: Clock
    owners: Owners
    egress: Callable[[], Awaitable[RunEgress]]
    """Asked once the base is made: by then it is known which hosts a package mirror names."""
    effort: Effort = field(default_factory=Effort)
    test_paths: TestPaths = USUAL_TESTS
    compare: Compare = compare_nothing
    rates: MachineRates = field(default_factory=MachineRates)
    """What sandboxes cost."""
    redactor: Redactor = field(default_factory=Redactor)
    """Takes out of what models are told what nobody may read."""
    checkpoints: Checkpoints = field(default_factory=LocalCheckpoints)
    """Where the workspaces of runs that outlive this process are kept."""


@dataclass(frozen=True, slots=True)
class Job:
    """One run, and what it is worked on with."""

    shop: Workshop
    access: ModelAccess
    record: Recorder
    stop: Stop
    approver: Approver
    past: Past = field(default_factory=Past)
    """What earlier segments have done of it."""
    durable: bool = False
    """Whether it outlives this process: its workspace is kept as it goes on."""
    meter: Meter = field(default_factory=Meter)
    """What its sandboxes have taken in this segment."""

    async def warn(self, *texts: str) -> None:
        """Put warnings on record."""
        for text in texts:
            await self.record.add(Notice(text, "warning"))

    @asynccontextmanager
    async def sandbox(
        self, base: BaseRef, egress: Egress, layer: LayerRef | None = None
    ) -> AsyncIterator[Sandbox]:
        """Open a sandbox of its own on a base, and on a layer, until the block ends."""
        run_id, driver, limits = self.record.run_id, self.shop.driver, self.shop.limits
        sandbox = await driver.create(run_id, base, limits, egress=egress, layer=layer)
        try:
            yield sandbox
        finally:
            try:
                await self.meter.read(sandbox)
            finally:
                await sandbox.close()


@dataclass(frozen=True, slots=True)
class Site:
    """Where a run's work is done."""

    task: Task
    spec: BaseSpec
    base: BaseRef
    egress: RunEgress
