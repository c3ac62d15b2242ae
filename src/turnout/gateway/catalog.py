"""What the gateway knows of models: who serves them, at what price, with what evidence."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from turnout.core.ids import DeploymentId, ModelId, ProviderName
from turnout.core.inference import TaskKind
from turnout.core.json import JsonObject
from turnout.core.money import Price
from turnout.gateway.dialog.conversation import Shape

__all__ = [
    "Account",
    "Caching",
    "Catalog",
    "Deployment",
    "Profile",
    "Provider",
    "StatedQuality",
    "ToolSupport",
]

Profile = Literal["loop", "repair", "branch"]
"""loop: passes the tool probe over several turns; repair: small, needs a failing test."""

ToolSupport = Literal["confirmed", "absent", "unknown"]

Caching = Literal["none", "automatic", "marks"]
"""How a deployment caches prompts: not, by itself, or up to marks in the request."""


@dataclass(frozen=True, slots=True)
class Account:
    """A cloud account through which a provider is reached."""

    kind: Literal["azure", "bedrock", "vertex"]
    options: Mapping[str, str] = field(default_factory=dict)
    """What the account's adapter needs, such as region, project or API version; no secrets."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A server that speaks one of the known shapes."""

    name: ProviderName
    base_url: str
    """Up to and including `/v1` where the server has that."""
    api_key: str = field(default="", repr=False)
    """Sent as a bearer token; empty: none is sent."""
    connect_timeout: float = 10.0
    """Seconds."""
    idle_timeout: float = 300.0
    """Seconds without a byte before the upstream counts as stalled."""
    unset_key: str = ""
    """Variable that should hold the key and is not set: nothing is asked of this provider."""
    shape: Shape = "chat"
    """The API that it speaks."""
    key_header: Literal["bearer", "x-api-key", "api-key"] = "bearer"
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent with every request; no secrets."""
    account: Account | None = None
    """None: the key alone opens it."""
    region: str = ""
    labels: frozenset[str] = frozenset()
    """What it complies with, such as `eu` or `hipaa`; policies may ask for it."""
    exact_path: bool = False
    """Whether `base_url` is the whole address, nothing to be added."""


@dataclass(frozen=True, slots=True)
class StatedQuality:
    """A model's quality at one task kind, with where the figure is from."""

    value: float
    """Share of tasks solved, 0 to 1."""
    source: str
    sample_size: int | None = None
    """None where the source does not say; the value then has no interval."""
    on: date | None = None
    """When it was measured; None where the source does not say."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """A model at a provider, with what was stated about it."""

    id: DeploymentId
    model: ModelId
    provider: ProviderName
    upstream_name: str
    """What the provider calls the model."""
    price: Price | None = None
    """None: unknown."""
    context_window: int | None = None
    """Tokens, input and output together; None: unknown."""
    max_output: int = 4_096
    """Tokens reserved for where a request names no limit."""
    tools: ToolSupport = "unknown"
    """Stated here, else settled by the probe."""
    enforces_tool_choice: bool = True
    """False: `required` and named tool choices are emulated by a JSON schema."""
    calls_in_text: bool = False
    """True: the server leaves tool calls in the message text."""
    json_schema: bool = True
    """Whether `response_format: json_schema` is enforced."""
    thinking_on: JsonObject = field(default_factory=dict)
    """Fields that a request with `extended_thinking` true adds to the body."""
    thinking_off: JsonObject = field(default_factory=dict)
    """The same for false, such as `{"reasoning_effort": "none"}`."""
    profile: Profile = "loop"
    quality: Mapping[TaskKind, StatedQuality] = field(default_factory=dict)
    modalities: frozenset[str] = frozenset()
    """What it takes beside text: image, audio, file."""
    caching: Caching = "none"
    reasoning_field: str = "reasoning_content"
    """Field of a chat message in which it says and reads its thoughts."""
    reasoning_back: bool = False
    """Whether it wants its thoughts back with the calls that they led to."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens", "as_sent"] = "as_sent"
    leaves_out: frozenset[str] = frozenset()
    """Top-level fields that it refuses: they are not sent."""
    labels: frozenset[str] = frozenset()
    """As the provider's, of this deployment alone."""
    region: str = ""
    """Empty: the provider's."""
    stated_ttft_ms: float | None = None
    stated_tokens_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class Catalog:
    """Every provider and deployment that the gateway may use."""

    providers: Mapping[ProviderName, Provider] = field(default_factory=dict)
    deployments: tuple[Deployment, ...] = ()

    def of_model(self, model: ModelId) -> tuple[Deployment, ...]:
        """Return the deployments of a model, in catalog order."""
        return tuple(d for d in self.deployments if d.model == model)

    def deployment(self, wanted: DeploymentId) -> Deployment | None:
        """Return the deployment of that id; None where there is none."""
        return next((d for d in self.deployments if d.id == wanted), None)
