"""The service room's front: takes a task in and shows its run as it happens."""

import asyncio
from collections.abc import AsyncGenerator, Callable

from turnout.agent.approval import Approver
from turnout.core.events import Entry
from turnout.core.ids import new_run_id
from turnout.core.tasks import Task
from turnout.errors import SandboxUnavailableError
from turnout.runs.intake import Intake, Resolve, take_in
from turnout.runs.ports import ModelAccess, Models, RecordStore, Report
from turnout.runs.record import Recorder
from turnout.runs.stop import Stop
from turnout.runs.summary import RunResult, Summary
from turnout.runs.worker import RunWorker, Workshop
from turnout.sandbox.base import SandboxDriver

__all__ = ["RunService", "check_walls"]


async def check_walls(driver: SandboxDriver) -> None:
    """Refuse (`SandboxUnavailableError`) to work where the walls do not hold."""
    walls = await driver.probe()
    if not walls.usable:
        missing = [(name, text) for name, holds, text in walls.facts if not holds]
        raise SandboxUnavailableError(
            f"This machine has no usable sandbox ({walls.driver}).",
            mend=" ".join(f"{name}: {text}." for name, text in missing)
            + " `turnout doctor` says more.",
        )


class RunService:
    """Takes tasks in and has them worked on; serves any number of runs at once."""

    def __init__(
        self,
        store: RecordStore,
        workshop: Workshop,
        models: Models,
        resolve: Resolve,
        report: Report,
        saw: Callable[[Entry], None] = lambda _: None,
    ) -> None:
        """`saw` is told of each entry that is on record, and must not wait."""
        self._saw = saw
        self._store = store
        self._workshop = workshop
        self._models = models
        self._resolve = resolve
        self._report = report

    async def run(
        self, task: Task, stop: Stop | None = None, approver: Approver | None = None
    ) -> AsyncGenerator[Entry | RunResult, None]:
        """Run a task, yielding each entry once it is on record; the last item is the result.

        `UsageError` and `UnfitError` come out where the task cannot be worked on at all; what was
        on record before stays there. Closing the iterator gives the run up at once. Without an
        `approver`, tool calls that wait for a person are refused.
        """
        intake = await take_in(task, self._resolve, self._workshop.compare)
        access = await self._ready()
        entries: asyncio.Queue[Entry | None] = asyncio.Queue()

        def publish(entry: Entry) -> None:
            entries.put_nowait(entry)
            self._saw(entry)

        recorder = Recorder(self._store, new_run_id(), self._workshop.clock, publish)
        worker = RunWorker(self._workshop, access, recorder, stop or Stop(), approver)
        work = asyncio.create_task(self._work(intake, access, recorder, worker, entries))
        summary = Summary()
        try:
            while (entry := await entries.get()) is not None:
                summary.add(entry)
                yield entry
            await work
        finally:
            work.cancel()
            # How it ends is on record; whoever gave it up waits for its end, not for its errors.
            await asyncio.gather(work, return_exceptions=True)
        if summary.result is not None:
            yield summary.result

    async def _ready(self) -> ModelAccess:
        await check_walls(self._workshop.driver)
        return await self._models.open(self._report)

    async def _work(
        self,
        intake: Intake,
        access: ModelAccess,
        recorder: Recorder,
        worker: RunWorker,
        entries: "asyncio.Queue[Entry | None]",
    ) -> None:
        try:
            with self._workshop.owners.holding(recorder.run_id):
                await recorder.begin(intake.started(access.strategy))
                await worker.work(intake)
        finally:
            entries.put_nowait(None)
