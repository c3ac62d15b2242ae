"""Carries one run from its base commit to its verdict, committing each fact as it happens.

Our own test runs, before and after, each have a fresh sandbox of their own: what the work leaves
behind, be it a process, a cache or an altered environment, cannot colour the verdict, and our
looking leaves no trace in the patch.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

from turnout.agent.base import Brief
from turnout.agent.explain import plain_explanation
from turnout.core.clock import Clock
from turnout.core.events import (
    ConnectionsAsked,
    Event,
    Explained,
    LoopEnded,
    ModelCallDone,
    ModelCallFailed,
    ModelCallIntended,
    Notice,
    PatchMade,
    ResourcesUsed,
    RunEnded,
    StepStarted,
    TestsRan,
    ToolCallDone,
    ToolCallIntended,
    VerdictGiven,
    WorkspaceReady,
)
from turnout.core.runs import Connection, Patch, TestReport
from turnout.errors import SandboxError, SandboxUnavailableError, TurnoutError
from turnout.runs.intake import Intake
from turnout.runs.ports import Agent, Explanation, ModelAccess, Owners, Suite
from turnout.runs.record import Recorder
from turnout.runs.stop import Stop, StoppedError
from turnout.runs.verdict import judge
from turnout.sandbox.base import (
    NO_EGRESS,
    NO_WALLS,
    BaseRef,
    BaseSpec,
    Egress,
    Limits,
    Sandbox,
    SandboxDriver,
)
from turnout.sandbox.egress.rules import rule_text

__all__ = ["RunEgress", "RunWorker", "Workshop"]

_DIFF_SECONDS: Final = 120.0
"""For comparing the workspace with its base, also after an urgent stop."""

_ASKED: Final = frozenset({"answered", "step_limit", "stuck"})
"""Outcomes of the loop after which its model can be asked to describe the change."""


@dataclass(frozen=True, slots=True)
class RunEgress:
    """What a run's sandboxes may reach."""

    work: Egress = NO_EGRESS
    """While the model works."""
    tests: Egress = NO_EGRESS
    """While our own tests judge: never a secret, and no package that is not declared."""


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


@dataclass(frozen=True, slots=True)
class _Opening:
    """What is known of the tests before the work."""

    command: str | None
    report: TestReport | None
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Work:
    """What the work left behind."""

    end: LoopEnded
    patch: Patch
    next_step: int


@dataclass(frozen=True, slots=True)
class _Closing:
    """What is known of the tests with the patch alone."""

    report: TestReport | None = None
    """None where they could not be run."""
    steered: tuple[str, ...] = ()
    """Changed files in which that changed what steers the tests."""


class RunWorker:
    """Works on one run; its record is the only result."""

    def __init__(
        self, workshop: Workshop, access: ModelAccess, recorder: Recorder, stop: Stop
    ) -> None:
        self._shop = workshop
        self._access = access
        self._record = recorder
        self._stop = stop
        self._egress = RunEgress()

    async def work(self, intake: Intake) -> None:
        """Work until the run has ended and say so on record, whatever ended it.

        Errors other than those of the sandbox come out after that, cancellation likewise.
        """
        end = RunEnded("failed", "A defect of Turnout ended the run.")
        try:
            end = await self._stages(intake)
        except StoppedError:
            end = RunEnded("cancelled", "Stopped by the user.")
        except SandboxError as error:
            end = RunEnded("failed", f"The sandbox failed: {error}")
        except TurnoutError as error:
            end = RunEnded("failed", str(error))
            raise
        except asyncio.CancelledError:
            end = RunEnded("cancelled", "Given up at once.")
            raise
        finally:
            await self._record.add(end)

    async def _stages(self, intake: Intake) -> RunEnded:
        for notice in intake.notices:
            await self._record.add(notice)
        await self._warn(*self._access.warnings)
        spec = BaseSpec(intake.task.repository, intake.commit, intake.task.requirements)
        base = await self._prepare(spec)
        self._egress = await self._shop.egress()
        opening = await self._open(intake, base)
        work = await self._follow(intake, base, opening)
        closing = await self._test_after(spec, base, opening, work.patch)
        verdict = judge(
            opening.report, closing.report, work.patch, opening.files, steered=closing.steered
        )
        await self._record.add(VerdictGiven(verdict))
        await self._explain(intake, work, opening.report, closing.report)
        return RunEnded(work.end.outcome, work.end.reason)

    async def _prepare(self, spec: BaseSpec) -> BaseRef:
        base = await self._stop.unless_asked(self._shop.driver.prepare(spec))
        await self._warn(*base.warnings)
        return base

    async def _open(self, intake: Intake, base: BaseRef) -> _Opening:
        """Look at the tests at base, in a sandbox of their own."""
        clock, suite = self._shop.clock, self._shop.suite
        start = clock.monotonic()
        async with self._sandbox(base, self._egress.tests) as sandbox:
            command = intake.task.test_command or await self._stop.unless_asked(
                suite.command(sandbox)
            )
            seconds = clock.monotonic() - start
            await self._record.add(
                WorkspaceReady(sandbox.isolation, command, base.requirements, seconds)
            )
            if sandbox.isolation == NO_WALLS:
                await self._warn("Nothing isolates the tools of this run from this machine.")
            files = await self._stop.unless_asked(suite.files(sandbox))
            report = None
            if command is not None:
                report = await self._stop.unless_asked(suite.run(sandbox, command))
                await self._record.add(TestsRan("before", report))
        if report is None or not report.found:
            await self._warn("No tests were found, so nothing can judge the result.")
        return _Opening(command, report, files)

    async def _follow(self, intake: Intake, base: BaseRef, opening: _Opening) -> _Work:
        """Let the strategy work; whatever ends it, keep the work so far."""
        brief = Brief(
            run_id=self._record.run_id,
            prompt=intake.task.prompt,
            surface=intake.task.surface,
            test_command=opening.command,
            tests_before=opening.report,
            test_files=opening.files,
            reachable=_reachable(self._egress.work),
        )
        async with self._sandbox(base, self._egress.work) as sandbox:
            strategy = self._shop.agent.strategy(
                self._access.strategy, self._access.client, sandbox
            )
            progress = _Progress(sandbox)
            try:
                end = await self._commit_each(strategy.run(brief), progress)
            except SandboxError as error:
                end = LoopEnded("failed", f"The sandbox failed: {error}")
                await self._record.add(end)
            finally:
                patch = await self._diff(sandbox)
                await self._note_use(progress)
            return _Work(end, patch, progress.step + 1)

    async def _commit_each(self, events: AsyncIterator[Event], progress: "_Progress") -> LoopEnded:
        """Commit each event before asking for the next, until the strategy or a person ends it."""
        try:
            while (event := await self._stop.unless_urgent(_next(events))) is not None:
                await self._record.add(event)
                if isinstance(event, LoopEnded):
                    return event
                progress.note(event)
                if isinstance(event, ToolCallDone):
                    await self._note_connections(progress)
                if self._stop.asked and not progress.open:
                    break
        except StoppedError:
            await self._record.add(Notice("The step under way was given up."))
        finally:
            await _close(events)
        stopped = LoopEnded("cancelled", "Stopped by the user.")
        silent = LoopEnded("failed", "The strategy ended without saying how.")
        end = stopped if self._stop.asked else silent
        await self._record.add(end)
        return end

    async def _diff(self, sandbox: Sandbox) -> Patch:
        try:
            async with asyncio.timeout(_DIFF_SECONDS):
                await sandbox.kill_all()
                patch = await sandbox.diff()
        except (SandboxError, TimeoutError) as error:
            await self._warn(f"The work so far could not be read: {error}")
            return Patch(b"", ())
        await self._record.add(PatchMade(patch))
        return patch

    async def _note_connections(self, progress: "_Progress") -> None:
        if asked := progress.new_connections():
            await self._record.add(ConnectionsAsked(asked))

    async def _note_use(self, progress: "_Progress") -> None:
        await self._note_connections(progress)
        try:
            used = await progress.sandbox.usage()
        except SandboxError:
            return
        await self._record.add(
            ResourcesUsed(
                used.cpu_seconds,
                used.peak_memory_bytes,
                used.disk_bytes,
                used.wall_seconds,
                used.frozen_seconds,
            )
        )

    async def _test_after(
        self, spec: BaseSpec, base: BaseRef, opening: _Opening, patch: Patch
    ) -> _Closing:
        """Run the tests on base and patch alone, in the environment that the patch declares."""
        if opening.command is None or not patch:
            return _Closing()
        try:
            base = await self._environment_of(spec, base, patch)
            async with self._sandbox(base, self._egress.tests) as sandbox:
                closing = await self._stop.unless_urgent(
                    self._apply_and_test(sandbox, opening.command, patch)
                )
        except (SandboxError, SandboxUnavailableError) as error:
            await self._warn(f"The tests could not be run with the patch: {error}")
            return _Closing()
        if closing.report is not None:
            await self._record.add(TestsRan("after", closing.report))
        return closing

    async def _environment_of(self, spec: BaseSpec, base: BaseRef, patch: Patch) -> BaseRef:
        """Return a base whose environment is made anew where the patch declares another one."""
        paths = [change.path for change in patch.files]
        if spec.requirements is not None or not self._shop.suite.may_declare(paths):
            return base
        async with self._sandbox(base, NO_EGRESS) as sandbox:
            await self._apply(sandbox, patch)
            manifests = await self._shop.suite.manifests(sandbox, paths)
        if not manifests:
            return base
        rebuilt = await self._prepare(replace(spec, manifests=manifests))
        if rebuilt.requirements != base.requirements:
            installed = ", ".join(rebuilt.requirements) or "nothing beside pytest"
            await self._record.add(
                Notice(f"The patch declares other dependencies; the tests run with {installed}.")
            )
        return rebuilt

    async def _apply(self, sandbox: Sandbox, patch: Patch) -> None:
        applied = await sandbox.apply_patch(patch.diff)
        if not applied.applied:
            raise SandboxError(f"The patch does not apply to its base: {applied.message}")

    async def _apply_and_test(self, sandbox: Sandbox, command: str, patch: Patch) -> _Closing:
        suite, paths = self._shop.suite, [change.path for change in patch.files]
        earlier = await suite.steering(sandbox, command, paths)
        await self._apply(sandbox, patch)
        later = await suite.steering(sandbox, command, paths)
        steered = tuple(path for path in paths if earlier.get(path) != later.get(path))
        return _Closing(await suite.run(sandbox, command), steered)

    async def _explain(
        self,
        intake: Intake,
        work: _Work,
        before: TestReport | None,
        after: TestReport | None,
    ) -> None:
        """Have the change described; a stop meanwhile leaves the run as it ended.

        A model that only repairs is too small to be believed: the facts describe its change.
        """
        if not work.patch:
            return
        repaired = self._access.strategy == "repair"
        if repaired or work.end.outcome not in _ASKED or self._stop.asked:
            reason = work.end.reason if repaired and work.end.outcome == "answered" else ""
            facts = plain_explanation(work.patch, after, tests_before=before, reason=reason)
            await self._record.add(Explained(facts))
            return
        subject = Explanation(
            self._record.run_id, work.next_step, intake.task.prompt, work.patch, after
        )
        events = self._shop.agent.explain(self._access.client, subject)
        try:
            while (event := await self._stop.unless_asked(_next(events))) is not None:
                await self._record.add(event)
        except StoppedError:
            return
        finally:
            await _close(events)

    async def _warn(self, *texts: str) -> None:
        for text in texts:
            await self._record.add(Notice(text, "warning"))

    @asynccontextmanager
    async def _sandbox(self, base: BaseRef, egress: Egress) -> AsyncIterator[Sandbox]:
        sandbox = await self._shop.driver.create(
            self._record.run_id, base, self._shop.limits, egress=egress
        )
        try:
            yield sandbox
        finally:
            await sandbox.close()


def _reachable(egress: Egress) -> tuple[str, ...]:
    """Return what a model is told of the hosts that its commands reach, and of secrets for them."""
    hosts = dict.fromkeys(map(rule_text, egress.rules))
    secrets = [
        f"{secret.host}, where over TLS ${secret.variable} in a header becomes a secret"
        for secret in egress.secrets
    ]
    return (*hosts, *secrets)


class _Progress:
    """How far a strategy is: its newest step, calls under way, connections on record."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.step = 0
        self.open = 0
        self._noted = 0

    def new_connections(self) -> tuple[Connection, ...]:
        asked = self.sandbox.connections()[self._noted :]
        self._noted += len(asked)
        return asked

    def note(self, event: Event) -> None:
        match event:
            case StepStarted(step=step):
                self.step = step
            case ModelCallIntended() | ToolCallIntended():
                self.open += 1
            case ModelCallDone() | ModelCallFailed() | ToolCallDone():
                self.open -= 1
            case _:
                pass


async def _next(events: AsyncIterator[Event]) -> Event | None:
    return await anext(events, None)


async def _close(events: AsyncIterator[Event]) -> None:
    if isinstance(events, AsyncGenerator):
        await events.aclose()
