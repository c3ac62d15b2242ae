"""The routing policy: which models, which tools, how much."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from turnout.core.ids import ModelId
from turnout.core.inference import Objective, StepKind, TaskKind
from turnout.core.money import Micros

__all__ = [
    "Alias",
    "EgressPolicy",
    "EvidenceBar",
    "PinnedFallback",
    "Policy",
    "PoolRule",
    "Reservation",
    "SecretBinding",
    "SessionCaps",
    "SessionTotals",
    "TaskRule",
    "ToolMode",
    "ToolRule",
]

ToolMode = Literal["any", "dry_run", "enforce"]
"""any: no list; dry_run: calls outside the list are recorded; enforce: they are refused."""


@dataclass(frozen=True, slots=True)
class PoolRule:
    """Which models the policy admits."""

    models: tuple[str, ...] = ()
    """Ids of models or deployments; empty: every model of the catalog."""
    exclude: tuple[str, ...] = ()
    """Ids of models or deployments that are never admitted."""
    providers: tuple[str, ...] = ()
    """Empty: any."""
    regions: tuple[str, ...] = ()
    """Empty: any; else a deployment whose region is unknown is not admitted."""
    labels: tuple[str, ...] = ()
    """All of these must be on the deployment or its provider."""
    min_context: int | None = None
    """Tokens; a window that is unknown is not admitted."""
    max_input_price: int | None = None
    """Micro-USD per million tokens; a price that is unknown is not admitted."""
    max_output_price: int | None = None
    """The same for output."""
    min_tool_success: float | None = None
    """Measured rate of well-formed tool calls; unmeasured is not admitted."""


@dataclass(frozen=True, slots=True)
class ToolRule:
    """Which tool names a request may declare."""

    mode: ToolMode = "any"
    allow: tuple[str, ...] = ()
    """Names, and `mcp:server/*`."""
    by_kind: tuple[tuple[StepKind, tuple[str, ...]], ...] = ()
    """For steps of one kind, the list that counts in place of `allow`."""
    read_only: tuple[str, ...] = ()
    """For runs that may change nothing (`routing.read_only`), the list that counts."""


class SessionTotals(NamedTuple):
    """What a session has used, open reservations included."""

    requests: int
    spend: Micros


@dataclass(frozen=True, slots=True)
class SessionCaps:
    """Limits on all requests that share a session id; None: no limit."""

    max_requests: int | None = None
    max_spend: Micros | None = None

    def exceeded_by(self, totals: SessionTotals) -> Literal["", "requests", "spend"]:
        """Return which limit admits no further request after `totals`; empty where none."""
        if self.max_requests is not None and totals.requests >= self.max_requests:
            return "requests"
        if self.max_spend is not None and totals.spend >= self.max_spend:
            return "spend"
        return ""


class Reservation(NamedTuple):
    """One admitted request's place in its session."""

    granted: bool
    exceeded: Literal["", "requests", "spend"]
    """The limit that was reached; empty where granted."""
    totals: SessionTotals
    """Before this request; where it was refused, of the charge that refused it."""
    refused_by: str = ""
    """Kind of the charge that refused it; empty where granted."""


@dataclass(frozen=True, slots=True)
class TaskRule:
    """For one task kind, a model that is tried first if it is eligible."""

    task: TaskKind
    model: ModelId


@dataclass(frozen=True, slots=True)
class PinnedFallback:
    """What happens when a model that the request names fails."""

    mode: Literal["same_model", "model", "auto", "none"] = "same_model"
    model: ModelId | None = None
    """The stand-in for mode `model`."""


@dataclass(frozen=True, slots=True)
class SecretBinding:
    """A secret that programs in a sandbox may use with one host and never see."""

    variable: str
    """Environment variable that holds a placeholder inside."""
    host: str
    source: str
    """Environment variable of the service that holds the value."""


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    """What the sandboxes of a run may reach, through the host's proxy; nothing by default."""

    allow: tuple[str, ...] = ()
    """Hosts, each a name or `*.name`, with `:port` where it is not 443 and 80."""
    private: tuple[str, ...] = ()
    """Hosts that may resolve to addresses which are not public."""
    packages: bool = False
    """Whether the package mirrors of the service's own pip and npm settings may be reached."""
    secrets: tuple[SecretBinding, ...] = ()


@dataclass(frozen=True, slots=True)
class EvidenceBar:
    """What must be known of a deployment's tool use before it gets requests with tools."""

    min_tool_success: float = 0.0
    """Lowest measured rate of well-formed tool calls, 0 to 1."""
    min_samples: int = 0
    """Calls that the rate must rest on; 0: an unmeasured deployment passes."""
    max_age_days: float | None = None
    """Oldest evidence that counts; None: any."""


@dataclass(frozen=True, slots=True)
class Alias:
    """A name that clients send, and what it stands for."""

    name: str
    """Exact, or with `*` for any characters."""
    model: str = "auto"
    """`auto`, or the id of a model or a deployment."""
    optimize: Objective | None = None
    task: TaskKind | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """One revision of the rules in force."""

    name: str = "default"
    revision: int = 0
    pool: PoolRule = field(default_factory=PoolRule)
    objective: Objective = "balanced"
    """Used where the request names none."""
    tools: ToolRule = field(default_factory=ToolRule)
    session: SessionCaps = field(default_factory=SessionCaps)
    task_rules: tuple[TaskRule, ...] = ()
    pinned: PinnedFallback = field(default_factory=PinnedFallback)
    min_quality: float = 0.0
    """Floor for `latency` and `cost`: measured quality below it is left out; unknown is kept."""
    egress: EgressPolicy = field(default_factory=EgressPolicy)
    evidence: EvidenceBar = field(default_factory=EvidenceBar)
    aliases: tuple[Alias, ...] = ()
    """The first that fits counts."""
    caching: bool = True
    """Whether prompts are marked for caching and sessions kept where a cache is warm."""
    provider_keys: tuple[tuple[str, str], ...] = ()
    """Provider and the variable that holds the key to use there, in place of the catalog's."""
    reroute_refusals: bool = False
    """Whether a prompt that one model's content filter refuses goes to another."""
    keep_replies_hours: float = 24.0
    """How long a completion can be replayed under its idempotency key."""
    allow_unpriced: bool = False
    """Whether a deployment without a known price may serve under a spend cap."""
