"""What the service needs from outside; `wiring` hands in what satisfies it."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from turnout.agent.approval import Approver
from turnout.agent.base import ModelClient, Strategy
from turnout.agent.review import ReviewSubject
from turnout.core.events import Entry, Event
from turnout.core.ids import RunId
from turnout.core.runs import Patch, RunRow, TestReport
from turnout.core.tasks import SurfaceName
from turnout.sandbox.base import Sandbox

__all__ = [
    "Agent",
    "Explanation",
    "ModelAccess",
    "Models",
    "Owners",
    "RecordStore",
    "Report",
    "RunRow",
    "StrategyName",
    "Suite",
]

StrategyName = Literal["loop", "repair", "branch"]
"""loop: the model chooses tools until it is done; repair: it rewrites code that a test blames."""

Report = Callable[[str], None]
"""Takes one line for the person who waits; nothing of it goes on record."""


class RecordStore(Protocol):
    """The record of every run: append-only, ordered, fenced by epoch."""

    async def begin(self, run_id: RunId, first: Event, at: datetime) -> int:
        """Open a record with its `RunStarted` and return its epoch, 1."""
        ...

    async def take_over(self, run_id: RunId) -> int:
        """Return a new epoch; appends under an older one are refused from now on."""
        ...

    async def append(self, run_id: RunId, epoch: int, event: Event, at: datetime) -> Entry:
        """Commit an event durably; `StaleEpochError` where another worker took over."""
        ...

    async def append_all(
        self, run_id: RunId, epoch: int, together: Sequence[Event], at: datetime
    ) -> Sequence[Entry]:
        """Commit events durably, all or none; the errors are those of `append`."""
        ...

    async def entries(
        self, run_id: RunId, *, after: int = 0, limit: int | None = None
    ) -> Sequence[Entry]:
        """Return a record from after `after`, in order; `NotFoundError` where there is none.

        `limit`: at most so many entries.
        """
        ...

    async def rows(self, *, limit: int = 50) -> Sequence[RunRow]:
        """Return the newest runs first."""
        ...

    async def row(self, run_id: RunId) -> RunRow:
        """Return one run's line; `NotFoundError` where there is none."""
        ...

    async def find(self, prefix: str) -> RunId:
        """Return the one run whose id starts so; `NotFoundError` where none or several do."""
        ...


class Owners(Protocol):
    """Who works on which run, told by something that ends with the process."""

    def holding(self, run_id: RunId) -> AbstractContextManager[bool]:
        """Own a run until the block ends; False where another process owns it."""
        ...


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """An open way to models, and how they are best worked with."""

    client: ModelClient
    strategy: StrategyName
    warnings: tuple[str, ...] = ()
    """What a person should know, such as a price that is not known."""
    escalated: StrategyName | None = None
    """How the models are best worked with that act steps get for `quality`; None: likewise."""


class Models(Protocol):
    """The models that the settings name."""

    async def open(self, report: Report) -> ModelAccess:
        """Make them ready at first use; `ModelUnavailableError` where none can do the job."""
        ...


@dataclass(frozen=True, slots=True)
class Explanation:
    """What the description of a change is written from."""

    run_id: RunId
    step: int
    """Number of the step that writes it."""
    prompt: str
    patch: Patch
    tests_after: TestReport | None


class Agent(Protocol):
    """The ways to work on a task."""

    def strategy(
        self, name: StrategyName, client: ModelClient, sandbox: Sandbox, approver: Approver
    ) -> Strategy:
        """Return the strategy of that name, working in `sandbox`."""
        ...

    def writes(self, surface: SurfaceName, tool: str) -> bool:
        """Whether a call of a surface's tool, as it was called, may change the workspace."""
        ...

    def review(
        self,
        client: ModelClient,
        sandbox: Sandbox,
        subject: ReviewSubject,
        approver: Approver,
        record: Iterable[Event] = (),
    ) -> AsyncIterator[Event]:
        """Read a change that `sandbox` holds, yielding each event; the last one is `Reviewed`.

        `record`: the events of this review that an earlier service has put on record.
        """
        ...

    def explain(self, client: ModelClient, subject: Explanation) -> AsyncIterator[Event]:
        """Write the description of a change, yielding each event; the last one is `Explained`."""
        ...


class Suite(Protocol):
    """Our own look at the tests of a workspace."""

    async def command(self, sandbox: Sandbox) -> str | None:
        """Return the shell command that runs the tests; None where there are none."""
        ...

    async def files(self, sandbox: Sandbox) -> tuple[str, ...]:
        """Return the existing test files, relative to the workspace."""
        ...

    async def steering(
        self, sandbox: Sandbox, command: str, paths: Iterable[str]
    ) -> Mapping[str, str | None]:
        """Return what in these files steers the tests; two equal readings steer alike."""
        ...

    def may_declare(self, paths: Iterable[str]) -> bool:
        """Whether a file of one of these paths may declare dependencies."""
        ...

    async def manifests(
        self, sandbox: Sandbox, paths: Iterable[str]
    ) -> tuple[tuple[str, str], ...]:
        """Return path and text of those of these files that declare dependencies."""
        ...

    async def run(self, sandbox: Sandbox, command: str) -> TestReport:
        """Run all tests once."""
        ...
