"""A whole evaluation: every unit once, whatever interrupts it, within time and money."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from hashlib import sha256
from typing import Final, Protocol

from turnout.core.clock import Clock
from turnout.core.money import Micros
from turnout.evals.trials.board import Board, Running
from turnout.evals.trials.model import Trial, Unit
from turnout.evals.trials.ports import Show
from turnout.evals.trials.run import Given
from turnout.evals.trials.schedule import Planned, work_through
from turnout.evals.trials.store import Results

__all__ = ["Bounds", "Evaluation", "TrialRunner", "spent_on"]

_RETRIES: Final = 2
"""More runs of a unit after one that came to nothing, by no fault of its patch."""
_PAUSE: Final = 2.0
"""Seconds before the first of them; then twice that."""


class TrialRunner(Protocol):
    """Runs one unit."""

    async def run(self, given: Given, show: Show) -> Trial:
        """Run and grade it; a failed run is a result, an unfit environment an error."""
        ...


@dataclass(frozen=True, slots=True)
class Bounds:
    """What an evaluation may take; None: no limit."""

    budget: Micros | None = None
    """Known cost of all of its trials, earlier ones included."""
    seconds: float | None = None
    """Wall time of this process."""


class Evaluation:
    """Works through units, and keeps each result before the next is begun in its place."""

    def __init__(
        self,
        results: Results,
        trials: TrialRunner,
        board: Board,
        clock: Clock,
        *,
        bounds: Bounds | None = None,
        on_end: Callable[[Trial], None] = lambda _: None,
    ) -> None:
        """`on_end` is told of each result that is kept."""
        self._results = results
        self._trials = trials
        self._board = board
        self._clock = clock
        self._bounds = bounds or Bounds()
        self._on_end = on_end
        self._began = clock.monotonic()
        self._why = ""

    @property
    def stopped_by(self) -> str:
        """Why no more units are begun, in one sentence; empty while they are."""
        if not self._why:
            self._why = self._bound()
        return self._why

    def stop(self, why: str) -> None:
        """Begin no more units."""
        self._why = self._why or why

    async def go(self, planned: Sequence[Planned], *, slots: int, again: bool = True) -> None:
        """Work on every unit that is not done, until all are or it is stopped.

        Without `again` those stay as they are that could not be graded.
        """
        known = [self._results.newest(unit) for unit, _, _ in planned]
        kept = [trial for trial in known if trial is not None and (trial.graded or not again)]
        self._board.plan([unit for unit, _, _ in planned], kept)
        units = {trial.unit for trial in kept}
        left = [each for each in planned if each[0] not in units]
        await work_through(left, self._work, slots=slots, stopped=lambda: bool(self.stopped_by))

    async def _work(self, planned: Planned) -> None:
        unit, instance, arm = planned
        running = self._board.begin(unit)
        try:
            trial = await self._tried(Given(unit, instance, arm, self._key(unit)), running)
        finally:
            self._board.leave(unit)
        self._board.end(trial)
        self._on_end(trial)

    async def _tried(self, given: Given, running: Running) -> Trial:
        """Return the result of a unit, of another run of it where one came to nothing."""
        retries = 0
        while True:
            trial = await self._trials.run(given, running.see)
            self._results.add(trial)
            last = retries == _RETRIES or trial.run_id is None or bool(self.stopped_by)
            if last or not trial.run_failed:
                return trial
            await self._clock.sleep(_PAUSE * 2**retries)
            retries += 1
            given = replace(given, key=self._key(given.unit))

    def _key(self, unit: Unit) -> str:
        """Return what stands for the run of a unit in every process that works on this file."""
        tried = self._results.failures(unit)
        return sha256(f"{self._results.evaluation}/{unit.key}/{tried}".encode()).hexdigest()

    def _bound(self) -> str:
        bounds = self._bounds
        spent = Micros(spent_on(self._results.rows) + self._board.under_way)
        if bounds.budget is not None and spent >= bounds.budget:
            return f"The budget of {_exactly(bounds.budget)} is used up."
        if bounds.seconds is not None and self._clock.monotonic() - self._began >= bounds.seconds:
            return f"The time of {bounds.seconds / 3600:g} hours is used up."
        return ""


def _exactly(amount: Micros) -> str:
    """Return an amount as it was given, to the last digit, with cents at least."""
    whole, _, parts = f"{Decimal(amount) / 1_000_000:.6f}".partition(".")
    return f"${whole}.{parts.rstrip('0'):0<2}"


def spent_on(rows: Sequence[Trial]) -> Micros:
    """Return the known cost of all that was run, each run once."""
    counted: set[str] = set()
    total = 0
    for trial in rows:
        if trial.run_id is not None and trial.run_id in counted:
            continue
        if trial.run_id is not None:
            counted.add(trial.run_id)
        total += trial.cost_micros or 0
    return Micros(total)
