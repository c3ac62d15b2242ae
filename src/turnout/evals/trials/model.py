"""What is run in an evaluation, and what is kept of it."""

import json
from dataclasses import astuple, dataclass
from datetime import datetime
from hashlib import sha256
from typing import Final

from turnout.core.ids import RunId
from turnout.core.inference import StepKind
from turnout.core.money import Micros
from turnout.core.runs import Outcome, VerdictName
from turnout.evals.conditions.model import Mode
from turnout.evals.grading.grade import GradeName

__all__ = ["SCHEMA", "KindUsage", "Mode", "Trial", "Unit"]

SCHEMA = 1
"""Of the rows that are written; rows that name none are 0."""

_CUT_SHORT: Final = frozenset({"cancelled", "failed"})


@dataclass(frozen=True, slots=True)
class Unit:
    """What is run at most once: one try of one arm on one instance."""

    instance_id: str
    instance_digest: str
    arm: str
    """Its name, for people."""
    arm_digest: str
    mode: Mode = "hidden"
    strict: bool = False
    """Whether any change to existing tests or to what controls them fails the trial."""
    attempt: int = 1
    """Counts from 1 to the number of repeats."""

    @property
    def key(self) -> str:
        """Hash of all of it: the same unit has the same key in every process."""
        return sha256(json.dumps(astuple(self)).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class KindUsage:
    """The model calls of one trial that were of one kind and that one model answered."""

    kind: StepKind
    model: str
    calls: int
    input_tokens: int
    """Cached ones included."""
    output_tokens: int
    cache_read_input_tokens: int = 0
    cost_micros: Micros | None = None
    """None where a call has no known price."""
    seconds: float = 0.0
    """Waited for answers."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One line of the results: what became of a unit."""

    instance_id: str
    instance_digest: str
    grade: GradeName
    arm: str = "auto"
    arm_digest: str = ""
    mode: Mode = "hidden"
    attempt: int = 1
    strict: bool = False
    harness: str = ""
    """Version of Turnout that ran and graded it."""
    environment: str = ""
    """Digest of what the tests ran in."""
    run_id: RunId | None = None
    """None where no run could begin, and for arms that are a command."""
    detail: str = ""
    """One sentence about the grade."""
    repo: str = ""
    """Of the instance, as its row names it; empty: unknown."""
    difficulty: str = ""
    """Of the instance, as its row says; empty: unknown."""
    title: str = ""
    """Of the instance, for people."""
    failed_before: bool | None = None
    """Of the tests that must pass; None where it was not looked into."""
    passes_after: bool | None = None
    tests_untouched: bool | None = None
    tests_touched: tuple[str, ...] = ()
    """Test files whose changes were left out before grading."""
    control_touched: tuple[str, ...] = ()
    """The same for files that say how tests are run."""
    tests_added: tuple[str, ...] = ()
    """New test files, left out as well; that is nobody's fault."""
    canary_failed: bool | None = None
    """A test of ours that is bound to fail was reported so; None where none could be put in."""
    bent_failed: bool | None = None
    """So were the tests that must pass, with what they expect bent; None where none was."""
    smells: tuple[str, ...] = ()
    """What a person should look at; no part of the grade."""
    outcome: Outcome | None = None
    """Why the run ended."""
    reason: str = ""
    verdict: VerdictName | None = None
    """What the visible tests said."""
    steps: int = 0
    usage: tuple[KindUsage, ...] = ()
    """One for each kind and model, in the order in which they were first called."""
    tool_calls: int = 0
    tool_failures: int = 0
    """Tool calls whose result was an error."""
    repairs: int = 0
    """Mended malformed tool calls."""
    nudges: int = 0
    """Model calls that had to be made again because of what the model had answered."""
    seconds: float = 0.0
    """Of the run, without its grading, and without the time in which no process worked on it."""
    grading_seconds: float = 0.0
    """Without what is done once for an instance."""
    overhead_seconds: float = 0.0
    """Of the harness, beside the run and its grading."""
    cost_micros: Micros | None = None
    """None where a call has no known price."""
    started_at: datetime | None = None
    diff: str = ""
    """The patch; bytes that are no UTF-8 appear as backslash escapes."""
    schema: int = SCHEMA

    @property
    def graded(self) -> bool:
        """Whether the grade says something about the patch."""
        return self.grade != "infrastructure"

    @property
    def run_failed(self) -> bool:
        """Whether its run came to nothing by no fault of its patch: another one may do better.

        False also where a run has ended well and could not be graded: that can be tried again
        without another one.
        """
        return not self.graded and (self.run_id is None or self.outcome in _CUT_SHORT)

    @property
    def models(self) -> tuple[str, ...]:
        """Those that answered, sorted."""
        return tuple(sorted({each.model for each in self.usage}))

    @property
    def model_calls(self) -> int:
        """Calls that a model answered."""
        return sum(each.calls for each in self.usage)

    @property
    def dropped(self) -> tuple[str, ...]:
        """Paths whose changes were left out before grading."""
        return (*self.tests_touched, *self.control_touched)

    @property
    def unit(self) -> Unit:
        """What this is the result of."""
        return Unit(
            self.instance_id,
            self.instance_digest,
            self.arm,
            self.arm_digest,
            self.mode,
            self.strict,
            self.attempt,
        )
