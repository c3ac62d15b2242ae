"""What one command of an evaluation ran under, as it is kept with the trials."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from hashlib import sha256
from typing import Literal

from pydantic import TypeAdapter

from turnout.core.json import JsonObject
from turnout.core.money import Micros

__all__ = [
    "ArmUnder",
    "Conditions",
    "Limits",
    "Machine",
    "Mode",
    "ModelUsed",
    "TaskSet",
    "conditions_json",
    "read_conditions",
    "set_digest",
]

Mode = Literal["hidden", "visible"]
"""Whether the agent sees the tests that grade it; results of the two are never mixed."""


@dataclass(frozen=True, slots=True)
class TaskSet:
    """The instances that trials were planned on, run or not."""

    name: str
    """Of its file."""
    instances: tuple[tuple[str, str], ...]
    """Id and digest of each, in order; those that could not judge here are among them."""
    left_out: tuple[tuple[str, str], ...] = ()
    """Id of each that no trial was planned on, and why."""

    @property
    def digest(self) -> str:
        """Hash of the rows, in whatever order they are: equal sets have equal digests."""
        return set_digest(self.instances)


@dataclass(frozen=True, slots=True)
class Machine:
    """Where the runs and their grading took place."""

    cpus: int
    """That the command could use."""
    processor: str
    memory_mib: int
    system: str
    """Name, kernel and architecture."""
    python: str
    sandbox: str
    """Which driver made the sandboxes."""


@dataclass(frozen=True, slots=True)
class ModelUsed:
    """A deployment that arms may be served by."""

    id: str
    model: str
    profile: str
    """How it works on tasks: `loop` or `repair`."""
    input_usd: str = ""
    """Per million tokens; empty: unknown."""
    output_usd: str = ""
    file: str = ""
    """Of weights, where this machine served it itself; the next three belong to it."""
    sha256: str = ""
    quantisation: str = ""
    threads: int = 0


@dataclass(frozen=True, slots=True)
class ArmUnder:
    """What an arm was resolved to."""

    name: str
    digest: str
    asked: str
    """As it was asked for, without its name."""
    policy: str
    revision: int
    """Of the policy; 0: it is of a file, or of the settings."""
    policy_digest: str
    """Of what the policy says, whatever it is called."""
    rules: str = ""
    """What the policy says beyond what is usual, for people; empty: unknown."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the command might take; None: no limit."""

    run_seconds: float | None = None
    """Wall time of one run's work."""
    budget: Micros | None = None
    hours: float | None = None
    concurrency: int = 1
    grading: int = 1
    """Patches that were graded at once."""
    test_seconds: float = 0.0
    """CPU time that one process of the grading tests might use."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What one command of an evaluation ran under."""

    at: datetime
    """When it began."""
    harness: str
    """Version of Turnout."""
    tasks: TaskSet
    mode: Mode
    strict: bool
    repeats: int
    surface: str
    """Which tools the models got."""
    arms: tuple[ArmUnder, ...]
    models: tuple[ModelUsed, ...]
    machine: Machine
    limits: Limits = field(default_factory=Limits)
    seeds: Mapping[str, str] = field(default_factory=dict)
    """What is drawn at random, and by which seed."""


def set_digest(instances: Iterable[tuple[str, str]]) -> str:
    """Return a hash of instances by id and digest, the same in whatever order they are."""
    return sha256(repr(sorted(set(instances))).encode()).hexdigest()[:12]


@cache
def _adapter() -> TypeAdapter[Conditions]:
    return TypeAdapter(Conditions)


def conditions_json(conditions: Conditions) -> JsonObject:
    """Return conditions as an object that `read_conditions` reads."""
    found: JsonObject = _adapter().dump_python(conditions, mode="json")
    return found


def read_conditions(value: object) -> Conditions:
    """Return the conditions in an object; a `pydantic.ValidationError` says what is wrong."""
    return _adapter().validate_python(value)
