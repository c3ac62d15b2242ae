"""The figures of a report; all of them follow from its trials."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from turnout.core.inference import StepKind
from turnout.core.money import Micros
from turnout.evals.conditions.model import Conditions
from turnout.evals.report.stats.bootstrap import Bounds
from turnout.evals.report.texts import TaskText
from turnout.evals.trials.model import Mode, Trial
from turnout.gateway.measure.interval import Interval

__all__ = [
    "Advice",
    "Arm",
    "ArmResult",
    "Comparison",
    "Count",
    "Facts",
    "Flips",
    "Group",
    "InstanceResults",
    "Kind",
    "LeftOut",
    "ModelShare",
    "Ratio",
    "Report",
    "Section",
    "SetCheck",
    "Share",
    "Unfit",
]


@dataclass(frozen=True, slots=True)
class Share:
    """How much was resolved; a task that was tried several times counts as their mean."""

    tasks: int
    """With at least one try that could be graded."""
    rate: float | None
    """None without any."""
    interval: Interval
    """95 %, by Wilson, of so many tasks; more tries of a task make it no narrower."""


@dataclass(frozen=True, slots=True)
class Group:
    """The tasks of one repository, or of one difficulty."""

    name: str
    share: Share


@dataclass(frozen=True, slots=True)
class Count:
    """How many trials ended one way."""

    name: str
    trials: int


@dataclass(frozen=True, slots=True)
class ModelShare:
    """What one model did of one kind of call."""

    model: str
    calls: int
    cost_micros: Micros | None


@dataclass(frozen=True, slots=True)
class Kind:
    """All model calls of one kind."""

    kind: StepKind
    calls: int
    input_tokens: int
    """Cached ones included."""
    output_tokens: int
    cache_read_input_tokens: int
    cost_micros: Micros | None
    """None where a call has no known price."""
    seconds: float
    models: tuple[ModelShare, ...]
    """Most calls first."""


@dataclass(frozen=True, slots=True)
class Flips:
    """Tasks that one arm resolved in some tries and not in others."""

    tasks: int
    """Tried more than once."""
    flipped: int


@dataclass(frozen=True, slots=True)
class Advice:
    """What a person should look at in pool or rules."""

    about: str
    """Of what kind it is, for people: arms have at most one of a kind."""
    text: str
    """One sentence or two."""


@dataclass(frozen=True, slots=True)
class Arm:
    """Figures of one arm. Those of steps, time and cost are over trials that could be graded."""

    name: str
    digest: str
    trials: int
    """Results there are, of fit tasks."""
    graded: int
    resolved: int
    share: Share
    rate_of_all: float | None
    """Resolved among all trials: what could not be graded counts as not resolved."""
    median_steps: float
    median_seconds: float
    seconds: float
    overhead_seconds: float
    """Median of what the harness took beside each run and its grading."""
    cost_micros: Micros | None
    """All spend, that of tries that were lost included; None: a price is unknown."""
    cost_per_task: float | None
    """Mean micro-USD of a graded trial."""
    cost_bounds: Bounds | None
    """Of this mean; None where trials are too few for any."""
    median_cost: float | None
    cost_per_resolved: float | None
    """All spend over trials resolved, in micro-USD; None where none was."""
    tool_calls: int
    tool_failures: int
    repairs: int
    nudges: int
    kinds: tuple[Kind, ...]
    grades: tuple[Count, ...]
    outcomes: tuple[Count, ...]
    difficulties: tuple[Group, ...]
    repositories: tuple[Group, ...]
    flips: Flips
    warnings: tuple[Advice, ...]
    """What its calls show of pool and rules."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """The total of one arm over that of another, on the tasks where both are known."""

    value: float
    bounds: Bounds | None
    """None where the tasks are too few for any."""


@dataclass(frozen=True, slots=True)
class ArmResult:
    """What one arm made of one task, all tries together."""

    arm: str
    tries: int
    """That could be graded."""
    resolved: int
    trials: tuple[Trial, ...]

    @property
    def share(self) -> float | None:
        """Resolved tries among graded ones; None without any."""
        return self.resolved / self.tries if self.tries else None


@dataclass(frozen=True, slots=True)
class InstanceResults:
    """One task with what each arm made of it, in the order of the arms."""

    instance_id: str
    digest: str
    title: str
    repo: str
    difficulty: str
    results: tuple[ArmResult, ...]

    def of(self, arm: str) -> ArmResult | None:
        """Return what an arm made of it; None where it has not tried."""
        return next((each for each in self.results if each.arm == arm), None)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One arm against another on the tasks that both have a grade for."""

    arm: str
    reference: str
    tasks: int
    both: int
    """Resolved by both, equally often."""
    only_arm: int
    """Resolved by the arm alone; of several tries, by the arm more often."""
    only_reference: int
    neither: int
    difference: float
    """Rate of the arm less that of the reference."""
    bounds: Bounds
    """Of it, at 95 %, as if it were the only comparison."""
    adjusted_bounds: Bounds
    """The same after all comparisons of the section: 0 is within them where `adjusted_p` shows
    nothing."""
    family: int
    """How many comparisons there are."""
    clusters: int
    """Repositories that were drawn again for the bounds; 0: single tasks were."""
    p: float
    mid_p: float
    adjusted_p: float
    """The exact p-value, by Holm, after all comparisons of the section."""
    smallest: float | None
    """Least difference that so many tasks show four times in five; None: they never do."""
    cost: Ratio | None
    cost_per_resolved: Ratio | None
    """Of what a resolved task costs, on the same tasks; None where an arm has resolved none."""
    steps: Ratio | None
    seconds: Ratio | None
    discordant: tuple[str, ...]
    """Instances that came out differently."""


@dataclass(frozen=True, slots=True)
class Unfit:
    """A task that is in no rate, because its own tests say nothing of a fix."""

    instance_id: str
    digest: str
    reason: str


@dataclass(frozen=True, slots=True)
class SetCheck:
    """What a check of the tasks themselves has found, without a fix and with the known ones."""

    tasks: int
    """That were checked."""
    unfit: tuple[Unfit, ...]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An instance that no trial was planned on."""

    instance_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Under what the trials were made."""

    set_digest: str
    """Of the task rows; equal sets have equal digests."""
    set_name: str
    """Of the file of tasks; empty: unknown."""
    harness: tuple[str, ...]
    """Versions of Turnout."""
    environments: tuple[str, ...]
    models: tuple[str, ...]
    first: datetime | None
    last: datetime | None


@dataclass(frozen=True, slots=True)
class Section:
    """Trials that may be compared: of one mode, equally strict."""

    mode: Mode
    strict: bool
    instances: int
    """Size of the set, run or not."""
    left_out: tuple[LeftOut, ...]
    """Instances of the set that no trial was planned on."""
    untried: tuple[str, ...]
    """Instances of the set that no arm has a result for, those left out apart."""
    planned: int
    """Trials that the commands were to see to; 0: that is not on record."""
    done: int
    """Those of them that have a result."""
    facts: Facts
    conditions: tuple[Conditions, ...]
    """What each command ran under that has run trials of it, oldest first."""
    arms: tuple[Arm, ...]
    comparisons: tuple[Comparison, ...]
    frontier: tuple[str, ...]
    """Arms of which none resolves more for less, the cheapest first."""
    checked: int
    """Tasks of the set that were checked themselves; 0: the check was not made."""
    unfit: tuple[Unfit, ...]
    tasks: tuple[InstanceResults, ...]
    """All of them, the unfit included."""


@dataclass(frozen=True, slots=True)
class Report:
    """What an evaluation shows."""

    sections: tuple[Section, ...]
    trials: tuple[Trial, ...]
    """All of them, in the order of the results; those that were tried again as well."""
    conditions: tuple[Conditions, ...] = ()
    """What commands ran them under, oldest first."""
    notes: tuple[str, ...] = ()
    """What a reader of all of it must know, a sentence each."""
    texts: Mapping[tuple[str, str], TaskText] = field(default_factory=dict)
    """What tasks say, by id and digest, where their file was read as well."""
