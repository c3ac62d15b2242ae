"""How far an evaluation is, for whoever looks on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from turnout.core.clock import Clock
from turnout.core.events import Entry, ModelCallDone, StepStarted, ToolCallIntended
from turnout.core.money import Micros
from turnout.evals.trials.model import Trial, Unit
from turnout.gateway.measure.interval import Interval, wilson

__all__ = ["ArmStanding", "Board", "Running"]

_NOTHING: Final = Micros(0)


@dataclass(slots=True)
class ArmStanding:
    """How far one arm is."""

    name: str
    total: int = 0
    done: int = 0
    graded: int = 0
    resolved: int = 0
    spent: Micros = _NOTHING
    """What is known of its cost."""
    unpriced: bool = False
    """Whether a call had no known price."""

    @property
    def interval(self) -> Interval:
        """Of resolved among graded, at 95 %."""
        return wilson(self.resolved / self.graded if self.graded else 0.0, self.graded)

    def take(self, trial: Trial) -> None:
        """Count a result."""
        self.done += 1
        self.graded += trial.graded
        self.resolved += trial.grade == "resolved"
        self.spent = Micros(self.spent + (trial.cost_micros or 0))
        self.unpriced |= trial.cost_micros is None


@dataclass(slots=True)
class Running:
    """One unit that is worked on."""

    unit: Unit
    since: float
    """By a clock that only grows."""
    step: int = 0
    tool: str = ""
    """The newest that was called."""
    cost: Micros = _NOTHING

    def see(self, entry: Entry) -> None:
        """Take the next entry of its run in."""
        match entry.event:
            case StepStarted(step=step):
                self.step = step
            case ToolCallIntended(call=call):
                self.tool = call.name
            case ModelCallDone(routing=routing):
                self.cost = Micros(self.cost + (routing.cost_micros or 0))
            case _:
                pass


@dataclass(slots=True)
class Board:
    """The standing of every arm, and what is worked on."""

    clock: Clock
    slots: int
    arms: dict[str, ArmStanding] = field(default_factory=dict)
    running: dict[Unit, Running] = field(default_factory=dict)
    _begun: float = 0.0
    _ended: int = 0
    """Units that have ended here."""

    def plan(self, units: Sequence[Unit], known: Sequence[Trial]) -> None:
        """Take in all that is to be done, and what was done before."""
        self._begun = self.clock.monotonic()
        for unit in units:
            self.arms.setdefault(unit.arm, ArmStanding(unit.arm)).total += 1
        for trial in known:
            self.arms[trial.arm].take(trial)

    def begin(self, unit: Unit) -> Running:
        """Take note that a unit is begun."""
        running = Running(unit, self.clock.monotonic())
        self.running[unit] = running
        return running

    def end(self, trial: Trial) -> None:
        """Take note of a result that counts."""
        self._ended += 1
        self.arms[trial.arm].take(trial)

    def leave(self, unit: Unit) -> None:
        """Take note that nobody works on a unit any more."""
        self.running.pop(unit, None)

    @property
    def total(self) -> int:
        """How many units there are."""
        return sum(arm.total for arm in self.arms.values())

    @property
    def done(self) -> int:
        """How many of them have a result."""
        return sum(arm.done for arm in self.arms.values())

    @property
    def under_way(self) -> Micros:
        """What the runs under way have cost so far, as far as it is known."""
        return Micros(sum(each.cost for each in self.running.values()))

    @property
    def seconds_left(self) -> float | None:
        """How long the rest will take at the pace so far; None before anything has ended."""
        if not self._ended:
            return None
        each = (self.clock.monotonic() - self._begun) / self._ended
        return each * max(0, self.total - self.done)

    def oldest(self) -> Iterator[Running]:
        """Yield what is worked on, longest first."""
        yield from sorted(self.running.values(), key=lambda each: each.since)
