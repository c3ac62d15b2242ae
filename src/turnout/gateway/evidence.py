"""What was measured of deployments; unknown stays unknown."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from turnout.core.ids import DeploymentId, ProviderName
from turnout.core.inference import TaskKind
from turnout.core.money import Micros
from turnout.core.tools import Holder
from turnout.gateway.catalog import ToolSupport

__all__ = [
    "Ailment",
    "Check",
    "Evidence",
    "Examination",
    "MeasuredQuality",
    "ProbeResult",
    "Sight",
    "Snapshot",
]

_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that an examination asked for, several times."""

    name: str
    passed: int
    tried: int
    detail: str = ""
    """What went wrong the last time; empty where nothing did."""


@dataclass(frozen=True, slots=True)
class Examination:
    """What a deployment did with some twenty requests that were made to find out."""

    at: datetime
    checks: tuple[Check, ...]
    ttft_ms_p50: float | None = None
    """Milliseconds to the first token; None where it could not be timed."""
    ttft_ms_p95: float | None = None
    tokens_per_second_p50: float | None = None
    timed: int = 0
    """Streams that the latencies rest on."""
    cut_short: str = ""
    """Why not everything was asked; empty where it was."""

    @property
    def passed(self) -> int:
        """How many answers were right."""
        return sum(check.passed for check in self.checks)

    @property
    def tried(self) -> int:
        """How many were asked for."""
        return sum(check.tried for check in self.checks)


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What asking a deployment for tool calls showed, once."""

    deployment: DeploymentId
    at: datetime
    tools: ToolSupport
    calls_in_text: bool
    """The server left its calls in the message text, where they could be read."""
    enforces_tool_choice: bool
    json_schema: bool
    detail: str
    """One sentence for people."""
    examined: Examination | None = None
    """How well it does it; None where that was never tried out."""


@dataclass(frozen=True, slots=True)
class MeasuredQuality:
    """A share of tasks of one kind that an evaluation saw solved."""

    value: float
    samples: int
    at: datetime
    source: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """Figures of one deployment; None where nothing was seen yet."""

    deployment: DeploymentId
    tools: ToolSupport = "unknown"
    tool_success: float | None = None
    """Share of tool calls that were right and well-formed, 0 to 1."""
    tool_samples: int = 0
    tool_at: datetime | None = None
    """When the newest of them was seen."""
    ttft_ms_p50: float | None = None
    ttft_ms_p95: float | None = None
    tokens_per_second_p50: float | None = None
    latency_samples: int = 0
    latency_at: datetime | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """All evidence at one moment; the same object as long as nothing has changed."""

    at: datetime = _NEVER
    of: Mapping[DeploymentId, Evidence] = field(default_factory=dict)
    quality: Mapping[str, Mapping[TaskKind, MeasuredQuality]] = field(default_factory=dict)
    """By the id of a model or of a deployment."""


@dataclass(frozen=True, slots=True)
class Ailment:
    """What keeps a deployment from being asked like the others."""

    state: Literal["open", "resting", "lost"]
    """open: it failed too often; resting: it asked to be left alone; both are not asked.
    lost: its last answer, a moment ago, was none; it is asked after all others."""
    seconds: float
    """Until that is over."""
    why: str


@dataclass(frozen=True, slots=True)
class Sight:
    """Everything beside request, policy and catalog that a decision sees."""

    evidence: Snapshot = field(default_factory=Snapshot)
    ailing: Mapping[DeploymentId, Ailment] = field(default_factory=dict)
    """Those that are not well; all others are."""
    held: Holder | None = None
    """Who made the open tool call."""
    warm: frozenset[DeploymentId] = frozenset()
    """Where a prompt cache holds the conversation so far."""
    budget: Micros | None = None
    """The least that is left under a cap on spend; None: no cap, or not known."""
    spend_capped: bool = False
    """Whether some cap on spend counts, beside the session's own in the policy."""
    unset_keys: Mapping[ProviderName, str] = field(default_factory=dict)
    """Variables that are not set, of those that the policy names in place of the catalog's."""
