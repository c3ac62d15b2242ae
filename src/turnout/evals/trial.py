"""One run on one instance, and what became of it."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from turnout.core.events import Entry
from turnout.core.ids import RunId
from turnout.core.money import Micros
from turnout.core.runs import Outcome, VerdictName
from turnout.core.tasks import SurfaceName, Task
from turnout.errors import RepositoryError
from turnout.evals.grade import Grade, GradeName, Grader
from turnout.evals.instances import Instance
from turnout.runs.stop import Stop
from turnout.runs.summary import RunResult
from turnout.sandbox.base import BaseSpec

__all__ = ["Runner", "Trial", "Trials"]

_GIT_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/nonexistent",
    "LC_ALL": "C.UTF-8",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "base",
    "GIT_AUTHOR_EMAIL": "base@localhost",
    "GIT_AUTHOR_DATE": "2024-01-01T00:00:00+0000",
    "GIT_COMMITTER_NAME": "base",
    "GIT_COMMITTER_EMAIL": "base@localhost",
    "GIT_COMMITTER_DATE": "2024-01-01T00:00:00+0000",
}
"""Equal trees become equal commits, so that their base layers are made once."""

_GIT_TIMEOUT = 60.0


class Runner(Protocol):
    """Works on a task as `turnout run` does."""

    def run(self, task: Task, stop: Stop | None = None) -> AsyncGenerator[Entry | RunResult, None]:
        """Run a task, yielding each entry once it is on record; the last item is the result."""
        ...


@dataclass(frozen=True, slots=True)
class Trial:
    """One line of the results."""

    instance_id: str
    instance_digest: str
    run_id: RunId | None
    """None where no run could begin."""
    grade: GradeName
    detail: str
    dropped: tuple[str, ...]
    """Paths whose changes were left out before grading."""
    outcome: Outcome | None
    """Why the run ended."""
    reason: str
    verdict: VerdictName | None
    """What the visible tests said."""
    steps: int
    model_calls: int
    models: tuple[str, ...]
    seconds: float
    """Of the run, without its grading."""
    cost_micros: Micros | None
    """None where a call has no known price."""
    diff: str
    """The patch; bytes that are no UTF-8 appear as backslash escapes."""


class Trials:
    """Runs and grades instances, one after the other."""

    def __init__(
        self,
        runner: Runner,
        grader: Grader,
        folder: Path,
        *,
        surface: SurfaceName = "guide",
        setup: str | None = None,
    ) -> None:
        self._runner = runner
        self._grader = grader
        self._folder = folder
        """Where repositories of instances that bring their own tree are made."""
        self._surface = surface
        self._setup = setup
        """For instances that are in a repository of their own."""

    async def run(self, instance: Instance, show: Callable[[Entry], None]) -> Trial:
        """Run and grade one instance; a failed run is a result, an unfit environment an error."""
        task = Task(
            prompt=instance.problem_statement,
            repository=instance.repository or await self._made(instance),
            base=instance.base_commit if instance.repository else "HEAD",
            surface=self._surface,
            test_command=instance.test_command,
            requirements=instance.requirements,
            setup=self._setup if instance.repository else None,
        )
        result: RunResult | None = None
        try:
            async with aclosing(self._runner.run(task)) as items:
                async for item in items:
                    if isinstance(item, RunResult):
                        result = item
                    else:
                        show(item)
        except RepositoryError as error:
            return _trial(instance, None, Grade("infrastructure", str(error)))
        if result is None:
            return _trial(instance, None, Grade("infrastructure", "The run left no result."))
        base = BaseSpec(task.repository, result.base_commit, task.requirements, setup=task.setup)
        return _trial(instance, result, await self._grader.grade(instance, base, result.patch.diff))

    async def _made(self, instance: Instance) -> str:
        """Make the repository of an instance that holds its whole tree; return its path."""
        root = self._folder / instance.digest[:16]
        if not (root / ".git").exists():
            await asyncio.to_thread(_write, root, instance)
            await _git(root, "init", "--quiet", "--initial-branch=main")
            await _git(root, "add", "--all", "--force")
            await _git(root, "commit", "--quiet", "--allow-empty", "--message=base")
        return str(root)


def _write(root: Path, instance: Instance) -> None:
    root.mkdir(parents=True, exist_ok=True)
    for name, text in instance.files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


async def _git(root: Path, *arguments: str) -> None:
    process = await asyncio.create_subprocess_exec(
        "git",
        *arguments,
        cwd=root,
        env=_GIT_ENVIRONMENT,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_GIT_TIMEOUT):
            _, errors = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise RepositoryError(f"git {arguments[0]} did not end in {root}.") from None
    if process.returncode != 0:
        text = errors.decode(errors="replace").strip()
        raise RepositoryError(f"git {arguments[0]} failed in {root}: {text}")


def _trial(instance: Instance, result: RunResult | None, grade: Grade) -> Trial:
    models = {call.routing.model for call in result.calls} if result else set()
    return Trial(
        instance_id=instance.instance_id,
        instance_digest=instance.digest,
        run_id=result.run_id if result else None,
        grade=grade.name,
        detail=grade.detail,
        dropped=grade.dropped,
        outcome=result.outcome if result else None,
        reason=result.reason if result else "",
        verdict=result.verdict.name if result and result.verdict else None,
        steps=result.steps if result else 0,
        model_calls=len(result.calls) if result else 0,
        models=tuple(sorted(models)),
        seconds=result.seconds if result else 0.0,
        cost_micros=result.cost if result and result.priced else None,
        diff=result.patch.diff.decode(errors="backslashreplace") if result else "",
    )
