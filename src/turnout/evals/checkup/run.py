"""A check-up of one model: sessions one after the other, as far as time, tokens and money go."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final, Protocol

from turnout.core.events import Entry, ModelCallDone, StepStarted
from turnout.core.money import Micros, format_usd
from turnout.core.tasks import SurfaceName, Task
from turnout.core.usage import Usage
from turnout.errors import UsageError
from turnout.evals.checkup.exercises import EXERCISES, Exercise
from turnout.evals.checkup.model import CallsSeen, Checkup, CodeSeen, Metered, NotesSeen
from turnout.evals.checkup.notes import LINKS, Notes, make_notes
from turnout.evals.checkup.reading import calls_seen, code_seen, notes_seen
from turnout.evals.instances.model import Instance
from turnout.evals.trials.model import Mode
from turnout.evals.trials.places import Place
from turnout.evals.trials.ports import Judge, Receipts
from turnout.runs.ports import StrategyName
from turnout.runs.stop import Stop
from turnout.runs.summary import RunResult
from turnout.sandbox.base import BaseSpec

__all__ = [
    "STEPS",
    "CheckupLimits",
    "MakesPlaces",
    "Runner",
    "Sessions",
    "Tools",
    "check_up",
    "expected_usage",
    "sessions",
]

STEPS: Final = LINKS + 18
"""Steps that the longest session may take; settings must allow for as many."""
_CODE_STEPS: Final = 25
"""Steps that a coding session may take."""

_FIRST_INPUT: Final = 1_800
"""Tokens of a session's first call: instructions, tools, the task."""
_PER_NOTE: Final = 110
"""Tokens that a note adds to the conversation, with its call."""
_CODE_INPUT: Final = 30_000
_CODE_OUTPUT: Final = 2_500
"""Tokens of a coding session that goes as most do."""
_NOTE_OUTPUT: Final = 60


class Runner(Protocol):
    """Works on a task as `turnout run` does."""

    def run(self, task: Task, stop: Stop | None = None) -> AsyncGenerator[Entry | RunResult, None]:
        """Run a task, yielding each entry once it is on record; the last item is the result."""
        ...


class MakesPlaces(Protocol):
    """Makes commits to work on."""

    async def of(self, instance: Instance, mode: Mode) -> Place:
        """Return where an instance is worked on."""
        ...


@dataclass(frozen=True, slots=True)
class CheckupLimits:
    """What the check-up of one model may take; the seconds of a session are the agent's to keep."""

    tokens: int
    """Input and output together."""
    spend: Micros | None
    """Counts where prices are known."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What a check-up is done with."""

    runner: Runner
    judge: Judge
    places: MakesPlaces
    receipts: Receipts
    surface: SurfaceName
    extra: tuple[str, ...] = ()
    """Tools beside those of the surface."""


@dataclass(frozen=True, slots=True)
class Sessions:
    """What is tried."""

    notes: Notes
    exercises: Sequence[Exercise]

    @property
    def count(self) -> int:
        """How many sessions that is."""
        return 1 + len(self.exercises)


def sessions(seed: int = 1, *, links: int = LINKS, exercises: int | None = None) -> Sessions:
    """Return what is tried of a model, the same for the same seed."""
    return Sessions(make_notes(seed, links), EXERCISES[:exercises])


def expected_usage(wanted: Sessions) -> Usage:
    """Return about what a model that does everything right uses; others may use more."""
    links, tasks = len(wanted.notes.stamps), len(wanted.exercises)
    return Usage(
        links * _FIRST_INPUT + _PER_NOTE * links * (links + 1) // 2 + tasks * _CODE_INPUT,
        links * _NOTE_OUTPUT + tasks * _CODE_OUTPUT,
    )


async def check_up(
    model: str,
    wanted: Sessions,
    tools: Tools,
    limits: CheckupLimits,
    on_session: Callable[[str], None] = lambda _: None,
) -> Checkup:
    """Try a model out; `on_session` is told of each session that begins.

    A session that goes wrong is a finding; only an environment that is not fit is an error.
    """
    begun = _Begun(model, tools, _Meter(limits))
    for exercise in wanted.exercises:
        if begun.meter.full:
            break
        on_session(exercise.name)
        await begun.code(exercise)
    if not begun.meter.full and begun.strategy in (None, "loop"):
        on_session("notes")
        await begun.notes(wanted.notes)
    return begun.found()


class _Begun:
    """A check-up under way."""

    def __init__(self, model: str, tools: Tools, meter: "_Meter") -> None:
        self.meter = meter
        self.strategy: StrategyName | None = None
        self._model = model
        self._tools = tools
        self._calls = CallsSeen()
        self._code: list[CodeSeen] = []
        self._notes: NotesSeen | None = None

    async def code(self, exercise: Exercise) -> None:
        """Have a coding task worked on, and grade it."""
        instance = exercise.instance()
        result, _ = await self._worked(instance, _CODE_STEPS)
        task = result.task
        base = BaseSpec(task.repository, result.base_commit, task.requirements)
        grade = await self._tools.judge.grade(instance, base, result.patch.diff, strict=False)
        self._code.append(code_seen(result, exercise, grade))

    async def notes(self, notes: Notes) -> None:
        """Have the notes read."""
        result, entries = await self._worked(_of_notes(notes), STEPS)
        self._notes = notes_seen(result, entries, notes)

    def found(self) -> Checkup:
        """Return all that was found."""
        return Checkup(
            self._model,
            self.strategy,
            self._calls,
            self._notes,
            tuple(self._code),
            self.meter.read(),
            self.meter.full,
        )

    async def _worked(self, instance: Instance, steps: int) -> tuple[RunResult, Sequence[Entry]]:
        """Have a task worked on, for so many steps at most."""
        place = await self._tools.places.of(instance, "hidden")
        task = Task(
            prompt=instance.problem_statement,
            repository=place.repository,
            base=place.base,
            surface=self._tools.surface,
            test_command=instance.test_command,
            requirements=instance.requirements,
        )
        stop, entries = Stop(), list[Entry]()
        result: RunResult | None = None
        async with aclosing(self._tools.runner.run(task, stop)) as items:
            async for item in items:
                if isinstance(item, RunResult):
                    result = item
                    continue
                entries.append(item)
                self.meter.see(item)
                late = isinstance(item.event, StepStarted) and item.event.step >= steps
                if (self.meter.full or late) and not stop.asked:
                    stop.ask()
        if result is None:
            raise UsageError(f"A session of {self._model} has left no result.")
        self.meter.ended(result)
        self.strategy = result.strategy
        receipts = await self._tools.receipts.receipts(result.run_id)
        self._calls += calls_seen(result, entries, receipts, self._tools.extra)
        return result, entries


class _Meter:
    """Adds up what sessions take, and says when it is enough."""

    def __init__(self, limits: CheckupLimits) -> None:
        self._limits = limits
        self._read = Metered(cost=Micros(0))

    @property
    def full(self) -> str:
        """Why no more may be taken; empty while more may be."""
        read, limits = self._read, self._limits
        if read.input_tokens + read.output_tokens >= limits.tokens:
            return f"it has used the {limits.tokens:,} tokens that it may"
        if limits.spend is not None and (read.cost or 0) >= limits.spend:
            return f"it has spent the {format_usd(limits.spend)} that it may"
        return ""

    def see(self, entry: Entry) -> None:
        """Take the next entry in."""
        event, read = entry.event, self._read
        if isinstance(event, ModelCallDone):
            cost = event.routing.cost_micros
            known = read.cost is not None and cost is not None
            self._read = replace(
                read,
                calls=read.calls + 1,
                input_tokens=read.input_tokens + event.usage.input_tokens,
                output_tokens=read.output_tokens + event.usage.output_tokens,
                cost=Micros((read.cost or 0) + (cost or 0)) if known else None,
            )

    def ended(self, result: RunResult) -> None:
        """Take the time of a session in."""
        self._read = replace(self._read, seconds=self._read.seconds + result.seconds)

    def read(self) -> Metered:
        """Return what was taken so far."""
        return self._read if self._read.calls else replace(self._read, cost=None)


def _of_notes(notes: Notes) -> Instance:
    digest = sha256(repr(sorted(notes.files.items())).encode()).hexdigest()
    return Instance(
        instance_id="checkup-notes",
        problem_statement=notes.prompt,
        repository="",
        base_commit="HEAD",
        files=notes.files,
        hidden_tests={},
        test_patch="",
        fail_to_pass=(),
        pass_to_pass=(),
        test_command=None,
        requirements=(),
        digest=digest,
    )
