"""What a trial needs: someone who works on a task, and someone who judges the patch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from turnout.core.events import Entry
from turnout.core.ids import RunId
from turnout.core.money import Micros
from turnout.core.receipts import Receipt
from turnout.core.tasks import Task
from turnout.evals.grading.model import Grade
from turnout.evals.instances.model import Instance
from turnout.evals.trials.arms import Arm
from turnout.evals.trials.model import KindUsage
from turnout.runs.summary import RunResult
from turnout.sandbox.base import BaseSpec

__all__ = ["Judge", "Program", "Programs", "Receipts", "Show", "Worked", "Works"]

Show = Callable[[Entry], None]
"""Is shown each entry of a run as it is committed, and must not wait."""


@dataclass(frozen=True, slots=True)
class Worked:
    """What became of a run."""

    result: RunResult
    nudges: int
    """Model calls that had to be made again because of what the model had answered."""
    away: float = 0.0
    """Seconds in which no process worked on it, because one had died."""


class Works(Protocol):
    """The service, as far as trials order from it."""

    async def work(self, arm: Arm, task: Task, key: str, show: Show) -> Worked:
        """Have a task worked on to its end.

        The same arm and key stand for the same run in every process: one that had begun goes on,
        one that has ended is not begun again.
        """
        ...


@dataclass(frozen=True, slots=True)
class Program:
    """What a command of the user's left behind."""

    diff: bytes
    base: str
    """Full object name of the commit that it began with."""
    ended: str
    """How it ended, in one sentence; empty where it ended with status 0."""
    timed_out: bool
    seconds: float
    usage: tuple[KindUsage, ...]
    """Of what it asked through the gateway."""
    cost: Micros | None
    """None where a call has no known price."""


class Programs(Protocol):
    """Runs the commands of arms, each in a checkout of its own."""

    async def run(self, arm: Arm, task: Task, key: str) -> Program:
        """Run the arm's command to its end; `RepositoryError` where there is no checkout."""
        ...


class Judge(Protocol):
    """Grades patches."""

    async def grade(
        self, instance: Instance, base: BaseSpec, diff: bytes, *, strict: bool
    ) -> Grade:
        """Grade the diff of a run that started from `base`; only cancellation comes out."""
        ...


class Receipts(Protocol):
    """What the gateway has written down of runs."""

    async def receipts(self, run_id: RunId) -> Sequence[Receipt]:
        """Return the receipts of a run's own calls, oldest first."""
        ...
