"""What trials are tested with: instances, arms, and whoever does their work."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from turnout.core.events import Entry, Event, PatchMade, RunEnded, RunStarted, StepStarted
from turnout.core.ids import RunId
from turnout.core.money import Micros
from turnout.core.runs import FileChange, Outcome, Patch
from turnout.core.tasks import Task
from turnout.evals.grading.model import Grade
from turnout.evals.instances.model import Instance
from turnout.evals.trials.arms import Arm, ArmAsk
from turnout.evals.trials.model import KindUsage, Trial, Unit
from turnout.evals.trials.ports import Program, Worked
from turnout.evals.trials.run import Given
from turnout.runs.summary import fold
from turnout.testing.clock import FrozenClock

INSTANCE = Instance(
    "one",
    "add is wrong",
    "",
    "HEAD",
    {"a/b.py": "x\n"},
    {"t.py": "new\n"},
    "",
    (),
    (),
    "pytest",
    None,
    "d",
)
AUTO = Arm.of(ArmAsk("auto", "auto"), ())
MODEL = Arm.of(ArmAsk("model:m", "model", "m"), ())
COMMAND = Arm.of(ArmAsk("mini", "command", "true"), ())
DIFF = b"--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n"
COMMIT = "a" * 40
CALLS = (KindUsage("act", "m", 3, 10, 2),)
LEFT = Program(DIFF, COMMIT, "", timed_out=False, seconds=4.0, usage=CALLS, cost=Micros(7))
RESOLVED = Grade("resolved", "2 tests pass.", failed_before=True, seconds=2.0)


def unit_of(instance: Instance = INSTANCE, arm: Arm = AUTO, attempt: int = 1) -> Unit:
    """Return a unit."""
    return Unit(instance.instance_id, instance.digest, arm.name, arm.digest, attempt=attempt)


def given_of(instance: Instance = INSTANCE, arm: Arm = AUTO, **fields: object) -> Given:
    """Return a unit with what it stands for."""
    return Given(replace(unit_of(instance, arm), **fields), instance, arm, "key")


def trial_of(unit: Unit, **fields: object) -> Trial:
    """Return a result."""
    made = Trial(
        unit.instance_id,
        unit.instance_digest,
        "unresolved",
        arm=unit.arm,
        arm_digest=unit.arm_digest,
        mode=unit.mode,
        strict=unit.strict,
        attempt=unit.attempt,
        run_id=RunId("run-1"),
        outcome="answered",
    )
    return replace(made, **fields)


@dataclass
class Works:
    """Ends every run as told, and keeps what was ordered."""

    outcome: Outcome = "answered"
    reason: str = "done"
    events: tuple[Event, ...] = ()
    """Before the end."""
    commit: str = COMMIT
    failure: Exception | None = None
    took: float = 0.0
    """Seconds from the first entry to the last."""
    away: float = 0.0
    """Of these, without a process."""
    tasks: list[Task] = field(default_factory=list)

    async def work(self, arm, task, key, show) -> Worked:
        """Show a short record and return its result."""
        self.tasks.append(task)
        if self.failure is not None:
            raise self.failure
        events = (
            RunStarted(task, self.commit, "loop"),
            StepStarted(1, "act", "latency"),
            PatchMade(Patch(DIFF, (FileChange("x.py", "modified", 1, 1),))),
            *self.events,
            RunEnded(self.outcome, self.reason),
        )
        at = datetime(2026, 1, 1, tzinfo=UTC)
        entries = [Entry(RunId("run-1"), n, at, event) for n, event in enumerate(events, 1)]
        entries[-1] = replace(entries[-1], at=at + timedelta(seconds=self.took))
        for entry in entries:
            show(entry)
        return Worked(fold(entries), nudges=2, away=self.away)


@dataclass
class Programs:
    """Leaves a diff."""

    left: Program = LEFT

    async def run(self, arm, task, key) -> Program:
        """Leave it."""
        return self.left


@dataclass
class Judge:
    """Grades as told, and keeps what it was asked."""

    clock: FrozenClock
    made: Grade = RESOLVED
    asked: list[tuple] = field(default_factory=list)

    async def grade(self, instance, base, diff, *, strict) -> Grade:
        """Grade after three seconds."""
        self.clock.advance(3.0)
        self.asked.append((instance, base, diff, strict))
        return self.made


class NoReceipts:
    """A gateway that has written nothing down."""

    async def receipts(self, run_id):
        """Return none."""
        return ()
