"""Commands of the user's as arms: each gets a checkout, and what it changes there is its patch.

They run on this machine, outside of any sandbox, because the user says so. The checkout is ours,
and what they have made of it is looked at by a sandbox alone.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from turnout.core.clock import Clock
from turnout.core.receipts import Receipt
from turnout.core.tasks import Task
from turnout.errors import RepositoryError
from turnout.evals.trials.arms import Arm
from turnout.evals.trials.ports import Program
from turnout.evals.trials.usage import charged
from turnout.sandbox.bare import BareStarter
from turnout.sandbox.collector import collect_folder
from turnout.sandbox.repository import resolve
from turnout.sandbox.workspace.building import building
from turnout.sandbox.workspace.folders import traversable
from turnout.sandbox.workspace.git import git_here, last_line
from turnout.sandbox.workspace.history import fetch_history
from turnout.sandbox.workspace.process import Finished, run_program
from turnout.sandbox.workspace.source import locate

__all__ = ["HostPrograms", "Lease", "Leases"]

_GIT_SECONDS: Final = 300.0
_CHMOD_SECONDS: Final = 300.0
_SHOWN: Final = 300
"""Characters of a command's last words."""


class Lease(Protocol):
    """A way to models for one command."""

    @property
    def variables(self) -> Mapping[str, str]:
        """Environment variables that tell a client of any API where models are, and its key."""
        ...

    @property
    def receipts(self) -> Sequence[Receipt]:
        """What it has asked so far."""
        ...


class Leases(Protocol):
    """Lets commands reach the gateway of this process."""

    def lease(self, arm: Arm, key: str) -> AbstractContextManager[Lease]:
        """Give out a key that opens the gateway until the block ends."""
        ...


@dataclass(frozen=True, slots=True)
class HostPrograms:
    """Runs commands, each in a checkout that is removed afterwards."""

    starter: BareStarter
    state_dir: Path
    leases: Leases
    clock: Clock
    seconds: float
    """That a command may take."""
    environment: Mapping[str, str] = field(repr=False)
    """Of the user."""

    async def run(self, arm: Arm, task: Task, key: str) -> Program:
        """Run the arm's command to its end; `RepositoryError` where there is no checkout."""
        commit = (await resolve(task.repository, task.base)).commit
        history = await fetch_history(await locate(task.repository), commit, self.state_dir)
        parent = traversable(self.state_dir / "checkouts")
        async with building(parent, "checkout") as folder:
            checkout = traversable(folder / "repo")
            await _check_out(history, commit, checkout)
            begun = self.clock.monotonic()
            with self.leases.lease(arm, key) as lease:
                variables = {"TURNOUT_TASK": task.prompt, **lease.variables}
                if task.test_command is not None:
                    variables["TURNOUT_TEST_COMMAND"] = task.test_command
                done = await run_program(
                    ["/bin/sh", "-c", arm.command],
                    timeout=self.seconds,
                    cwd=checkout,
                    environment={**self.environment, **variables},
                )
                seconds = self.clock.monotonic() - begun
                usage, cost = charged(lease.receipts)
            patch = await self._patch(checkout, history, commit)
        return Program(
            patch, commit, _ended(done, self.seconds), done.code is None, seconds, usage, cost
        )

    async def _patch(self, checkout: Path, history: Path, commit: str) -> bytes:
        argv = ["chmod", "-R", "--", "a+rX", str(checkout)]
        await run_program(argv, timeout=_CHMOD_SECONDS)
        return (await collect_folder(self.starter, checkout, history, commit)).diff


async def _check_out(history: Path, commit: str, folder: Path) -> None:
    """Make a checkout that knows a commit and its ancestors, and nothing else."""
    here = ["-C", str(folder)]
    for fetches, arguments in (
        (False, ["init", "--quiet", "--template=", "--initial-branch=main"]),
        (
            True,
            ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--", str(history), commit],
        ),
        (False, ["reset", "--quiet", "--hard", commit]),
    ):
        done = await git_here([*here, *arguments], timeout=_GIT_SECONDS, fetches=fetches)
        if not done.ok:
            said = last_line(done.stderr)
            raise RepositoryError(f"git {arguments[0]} failed on a checkout: {said}")


def _ended(done: Finished, seconds: float) -> str:
    if done.code is None:
        return f"The command did not end within {seconds:.0f} s."
    if done.ok:
        return ""
    said = last_line(done.stderr)[:_SHOWN] if done.stderr.strip() else ""
    return f"The command ended with status {done.code}{f': {said}' if said else '.'}"
