"""Our own test runs, before and after the work, each in a fresh sandbox.

What the work leaves behind, be it a process, a cache or an altered environment, cannot colour the
verdict, and our looking leaves no trace in the patch.
"""

from dataclasses import dataclass, replace
from typing import Final

from turnout.core.events import Notice, TestsRan, WorkspaceReady
from turnout.core.runs import Patch, TestReport, Verdict
from turnout.errors import SandboxError, SandboxUnavailableError, UnfitError
from turnout.runs.verdict import NAME_TESTS, judge
from turnout.runs.worker.workshop import Job, Site
from turnout.sandbox.base import NO_EGRESS, NO_WALLS, BaseRef, BaseSpec, Sandbox
from turnout.sandbox.testrun import USUAL_TESTS, TestPaths

__all__ = [
    "Closing",
    "Opening",
    "apply_patch",
    "look_at_base",
    "prepare",
    "test_patch",
    "verdict_on",
]

_UNSTARTED: Final = {126: "could not be executed", 127: "was not found"}
"""What a shell's exit status says of a command of which no test was heard."""

_LONGEST: Final = 200
"""Characters of a command or a line that an error shows."""

_MEND: Final = (
    "Check `--test-command` or `[tests] command`: it runs in the sandbox, which has what the "
    "repository declares and `[tests] requirements` names."
)


@dataclass(frozen=True, slots=True)
class Opening:
    """What is known of the tests before the work."""

    command: str | None
    report: TestReport | None
    files: tuple[str, ...]
    """Test files that exist."""


@dataclass(frozen=True, slots=True)
class Closing:
    """What is known of the tests with the patch alone."""

    report: TestReport | None = None
    """None where they could not be run."""
    steered: tuple[str, ...] = ()
    """Changed files in which that changed what steers the tests."""


async def prepare(job: Job, spec: BaseSpec) -> BaseRef:
    """Make the base of a workspace, or find it made."""
    base = await job.stop.unless_asked(job.shop.driver.prepare(spec))
    await job.warn(*base.warnings)
    return base


async def look_at_base(job: Job, site: Site) -> Opening:
    """Look at the tests at base, in a sandbox of their own; what is on record stays as it is.

    `UnfitError` where the command that was named for them does not exist.
    """
    clock, suite, stop, past = job.shop.clock, job.shop.suite, job.stop, job.past
    start = clock.monotonic()
    async with job.sandbox(site.base, site.egress.tests) as sandbox:
        if past.ready is not None:
            command = past.ready.test_command
        else:
            command = site.task.test_command or await stop.unless_asked(suite.command(sandbox))
            seconds = clock.monotonic() - start
            ready = WorkspaceReady(sandbox.isolation, command, site.base.requirements, seconds)
            await job.record.add(ready)
            if sandbox.isolation == NO_WALLS:
                await job.warn("Nothing isolates the tools of this run from this machine.")
        files = await stop.unless_asked(suite.files(sandbox))
        report = past.before
        if command is not None and report is None:
            report = await stop.unless_asked(suite.run(sandbox, command))
            if unstarted := _unstarted(report):
                if site.task.test_command:
                    raise UnfitError(f"The test command {unstarted}", mend=_MEND)
                await job.warn(f"The test command that was detected {unstarted} {NAME_TESTS}")
            await job.record.add(TestsRan("before", report))
    if not past.opened and (report is None or not report.found):
        await job.warn(f"No tests were found, so nothing can judge the result. {NAME_TESTS}")
    return Opening(command, report, files)


def _unstarted(report: TestReport) -> str:
    """Return what became of a command that could not be started; empty where it could."""
    how = _UNSTARTED.get(report.exit_code or 0)
    if how is None or report.passed or report.failed:
        return ""
    said = report.output.strip().rpartition("\n")[2][:_LONGEST]
    return (
        f"`{report.command[:_LONGEST]}` {how} (status {report.exit_code}): {said or 'no output'}."
    )


async def test_patch(
    job: Job, site: Site, opening: Opening, patch: Patch, known: TestReport | None
) -> Closing:
    """Run the tests on base and patch alone, in the environment that the patch declares.

    `known`: what they said in an earlier segment of the run, if they were run.
    """
    if opening.command is None or not patch:
        return Closing()
    try:
        base = await _environment_of(job, site, patch)
        async with job.sandbox(base, site.egress.tests) as sandbox:
            closing = await job.stop.unless_urgent(
                _apply_and_test(job, sandbox, opening.command, patch, known)
            )
    except (SandboxError, SandboxUnavailableError) as error:
        await job.warn(f"The tests could not be run with the patch: {error}")
        return Closing()
    if closing.report is not None and known is None:
        await job.record.add(TestsRan("after", closing.report))
    return closing


def verdict_on(
    patch: Patch, opening: Opening, closing: Closing, paths: TestPaths = USUAL_TESTS
) -> Verdict:
    """Return what our test runs say of a patch; `paths` are those of tests."""
    return judge(
        opening.report,
        closing.report,
        patch,
        opening.files,
        steered=closing.steered,
        paths=paths,
    )


async def apply_patch(sandbox: Sandbox, patch: Patch) -> None:
    """Apply a patch to a fresh workspace; `SandboxError` where it does not apply."""
    applied = await sandbox.apply_patch(patch.diff)
    if not applied.applied:
        raise SandboxError(f"The patch does not apply to its base: {applied.message}")


async def _environment_of(job: Job, site: Site, patch: Patch) -> BaseRef:
    """Return a base whose environment is made anew where the patch declares another one."""
    paths = [change.path for change in patch.files]
    if site.spec.requirements is not None or not job.shop.suite.may_declare(paths):
        return site.base
    async with job.sandbox(site.base, NO_EGRESS) as sandbox:
        await apply_patch(sandbox, patch)
        manifests = await job.shop.suite.manifests(sandbox, paths)
    if not manifests:
        return site.base
    rebuilt = await prepare(job, replace(site.spec, manifests=manifests))
    if rebuilt.requirements != site.base.requirements:
        installed = ", ".join(rebuilt.requirements) or "nothing beside pytest"
        await job.record.add(
            Notice(f"The patch declares other dependencies; the tests run with {installed}.")
        )
    return rebuilt


async def _apply_and_test(
    job: Job, sandbox: Sandbox, command: str, patch: Patch, known: TestReport | None
) -> Closing:
    suite, paths = job.shop.suite, [change.path for change in patch.files]
    earlier = await suite.steering(sandbox, command, paths)
    await apply_patch(sandbox, patch)
    later = await suite.steering(sandbox, command, paths)
    steered = tuple(path for path in paths if earlier.get(path) != later.get(path))
    return Closing(known or await suite.run(sandbox, command), steered)
