"""What a check-up finds of one model."""

from dataclasses import dataclass

from turnout.core.money import Micros
from turnout.core.runs import Outcome
from turnout.evals.grading.model import GradeName
from turnout.runs.ports import StrategyName

__all__ = ["CallsSeen", "Checkup", "CodeSeen", "Metered", "NotesSeen"]


@dataclass(frozen=True, slots=True)
class CallsSeen:
    """The tool calls of one or more sessions, by how they came."""

    made: int = 0
    unusable: int = 0
    """Of those: arguments that do not fit, or a tool that does not exist."""
    mended: int = 0
    """Of those: the gateway had to mend them."""
    nudged: int = 0
    """Times that there was no call where one was needed, or one written as text."""

    def __add__(self, other: "CallsSeen") -> "CallsSeen":
        return CallsSeen(
            self.made + other.made,
            self.unusable + other.unusable,
            self.mended + other.mended,
            self.nudged + other.nudged,
        )

    @property
    def tried(self) -> int:
        """Calls that were made or should have been."""
        return self.made + self.nudged

    @property
    def sound(self) -> int:
        """Calls that could be used as they came."""
        return max(0, self.made - self.unusable - self.mended)


@dataclass(frozen=True, slots=True)
class NotesSeen:
    """What became of the long session."""

    links: int
    """Notes on the way."""
    read: int
    """Of those, as far as the way was followed without a gap."""
    at_once: int
    """The most notes of the way that one call has shown: 1 where they were read one by one."""
    steps: int
    """Act steps from the first reading of the first note to the answer; 0: it was never read."""
    remembered: bool
    """Whether the answer has the pass phrase of the first note."""
    looked_again: bool
    """Whether the first note was opened once more."""
    condensed: int
    """How often the conversation was condensed on the way."""
    outcome: Outcome | None
    reason: str
    """Why it ended, in one sentence."""

    @property
    def reached(self) -> bool:
        """Whether every note was read."""
        return self.read == self.links

    @property
    def retained(self) -> bool | None:
        """Whether the phrase was known from memory; None where the end was not reached."""
        if not self.reached:
            return None
        return self.remembered and not self.looked_again


@dataclass(frozen=True, slots=True)
class CodeSeen:
    """What became of one coding task."""

    task: str
    grade: GradeName
    detail: str
    outside: tuple[str, ...]
    """Files that were changed and had nothing to do with it."""
    changed: bool
    """Whether anything was changed at all."""
    edits: int | None
    """Edits until it was done, 1: at the first try; None: it was done by other means."""

    @property
    def kept_to_it(self) -> bool:
        """Whether what was asked for is all that was touched."""
        return self.changed and not self.outside

    @property
    def first_try(self) -> bool:
        """Whether the first code that was written is right."""
        return self.grade == "resolved" and self.edits == 1


@dataclass(frozen=True, slots=True)
class Metered:
    """What a check-up took of one model."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Micros | None = None
    """None where nothing was asked, or the price of a call is unknown."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Checkup:
    """All that was found of one model."""

    model: str
    strategy: StrategyName | None
    """How it works: `repair` where it cannot call tools; None: it never began."""
    calls: CallsSeen
    notes: NotesSeen | None
    """None where it cannot call tools, or there was no time or money for it."""
    code: tuple[CodeSeen, ...]
    metered: Metered
    cut_short: str = ""
    """Why not everything was tried; empty where it was."""
