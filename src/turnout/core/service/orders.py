"""A run as it was ordered, and where it stands."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal

from turnout.core.events import ApprovalAsked
from turnout.core.ids import RunId, ToolCallId
from turnout.core.money import Micros
from turnout.core.runs import Outcome, RunState, VerdictName
from turnout.core.service.forges import Origin
from turnout.core.tasks import Task

__all__ = [
    "Answer",
    "Head",
    "Later",
    "Once",
    "Order",
    "OrderLimits",
    "OrderedRun",
    "Publish",
    "RunFilter",
    "RunPage",
    "Sought",
    "Submitted",
    "cancelled",
    "cancelled_words",
]

Publish = Literal["branch", "draft"]

_MOST_WORDS: Final = 32
_SHORTEST_PART: Final = 4
"""Characters of an id that stand for it without its beginning."""


@dataclass(frozen=True, slots=True)
class OrderLimits:
    """What one run may take; None: what the settings say. They are never more than those."""

    max_steps: int | None = None
    max_seconds: float | None = None
    max_spend: Micros | None = None


@dataclass(frozen=True, slots=True)
class Later:
    """What was asked for of this one run once it was ordered: no part of what is done again."""

    publish: Publish | None = None
    """What a person had become of its diff after its end."""
    cancelled_by: str = ""
    """Name of the key that has cancelled it."""


@dataclass(frozen=True, slots=True)
class Order:
    """What somebody has asked for; only `later` comes after it."""

    task: Task
    """Its repository holds no credentials: they would be on record."""
    project: str
    """Whose run it is; nobody else learns that it exists."""
    key: str
    """Name of the key that ordered it and that its model calls are charged to."""
    policy: str | None = None
    """Policy of its model calls; None: the key's own."""
    priority: int = 0
    """-100 to 100, the highest first within a project."""
    labels: tuple[str, ...] = ()
    limits: OrderLimits = field(default_factory=OrderLimits)
    notify: str | None = None
    """URL that is told of changes of its state."""
    publish: Publish | None = None
    """What becomes of its diff: a branch of its own, or that and a draft request to merge it."""
    retry_of: RunId | None = None
    """The run that this one does again."""
    origin: Origin | None = None
    """Where at a forge it was asked for; None where it came in another way."""
    later: Later = field(default_factory=Later)

    @property
    def publishes(self) -> Publish | None:
        """What becomes of the diff, whoever asked for it, and when."""
        return self.later.publish or self.publish


def cancelled(order: Order, by: str) -> Order:
    """Return an order with the name of the key that has cancelled its run."""
    return replace(order, later=replace(order.later, cancelled_by=by))


def cancelled_words(by: str) -> str:
    """Return that a run was cancelled, without a full stop; `by`: the key, or empty."""
    return f"Cancelled by {by}" if by else "Cancelled"


@dataclass(frozen=True, slots=True)
class OrderedRun:
    """An order and where its run stands."""

    run_id: RunId
    number: int
    """Grows with each run: a place in the list of runs."""
    order: Order
    state: RunState
    epoch: int
    """Counts the segments that were begun; each one's appends are fenced by it."""
    ordered_at: datetime
    started_at: datetime | None = None
    """When its first segment began; None before."""
    ended_at: datetime | None = None
    outcome: Outcome | None = None
    verdict: VerdictName | None = None
    cancel_asked: bool = False
    waits_for: ApprovalAsked | None = None
    """The tool call that a person is to decide on, while it is waiting."""
    worker: str = ""
    """Who works on it, while it is running."""


@dataclass(frozen=True, slots=True)
class Once:
    """A client's promise that it means the same run whenever it sends the same key."""

    key: str
    digest: str
    """Of the whole request: the same key with another one is a conflict."""


@dataclass(frozen=True, slots=True)
class Submitted:
    """What came of a submission."""

    run: OrderedRun
    created: bool
    """False where the same request had made it before."""


@dataclass(frozen=True, slots=True)
class Head:
    """How far a run is."""

    last_seq: int
    """Place of the newest entry of its record; 0 while nobody has begun it."""
    state: RunState


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's decision on the tool call that a run waits for."""

    allowed: bool
    by: str
    """Name of the key or person."""
    note: str = ""
    """What the model is told with a refusal."""
    call_id: ToolCallId | None = None
    """The call that is meant, so that an answer that comes late decides on no other; None: any."""


@dataclass(frozen=True, slots=True)
class Sought:
    """One word that is looked for."""

    word: str
    """In lower case."""

    @property
    def beginnings(self) -> Sequence[str]:
        """What an id begins with that is meant by it: with its `run-` or without, as branches."""
        bare = self.word.rpartition("/")[2]
        return (bare, f"run-{bare}") if len(bare) >= _SHORTEST_PART else (bare,)

    @property
    def ending(self) -> str:
        """What such an id may end with; empty where the word is too short to mean one."""
        return self.word if len(self.word) >= _SHORTEST_PART else ""


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs of a project are listed; what is empty or None leaves none out."""

    states: tuple[RunState, ...] = ()
    outcome: Outcome | None = None
    verdict: VerdictName | None = None
    label: str | None = None
    repository: str | None = None
    words: str = ""
    """Each in the task, in any order and whatever their case, or a part of the run's id."""

    @property
    def sought(self) -> Sequence[Sought]:
        """The words one by one; of very many the last ones are looked for as they stand."""
        return tuple(map(Sought, self.words.lower().split(maxsplit=_MOST_WORDS - 1)))


@dataclass(frozen=True, slots=True)
class RunPage:
    """Some runs, newest first."""

    runs: tuple[OrderedRun, ...]
    before: int | None
    """`number` to go on before; None where nothing follows."""
