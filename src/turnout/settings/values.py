"""What was set, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

from turnout.agent.base import AgentConfig
from turnout.core.govern.connections import Connection as ToolConnection
from turnout.core.observe.options import ObserveOptions
from turnout.core.policies import Policy
from turnout.core.secrecy.redactor import Redactor
from turnout.core.service.options import ServiceOptions
from turnout.core.spend.rates import MachineRates
from turnout.core.tasks import SurfaceName
from turnout.gateway.catalog import Catalog
from turnout.gateway.dialog.conversation import Shape
from turnout.sandbox.base import Egress, Limits
from turnout.sandbox.container.options import ContainerOptions
from turnout.sandbox.hosted.options import HostedOptions
from turnout.sandbox.kubernetes.options import KubernetesOptions
from turnout.sandbox.testrun import TestPaths

__all__ = [
    "CONFIG_NAME",
    "HOSTED_KEYS",
    "KNOWN_KEYS",
    "REACH_VARIABLES",
    "ConfigFile",
    "DriverName",
    "Endpoint",
    "KnownKey",
    "Settings",
    "shape_at",
]

CONFIG_NAME: Final = "turnout.toml"

HOSTED_KEYS: Final = {
    "e2b": "E2B_API_KEY",
    "novita": "NOVITA_API_KEY",
    "withruntime": "RUNTIME_API_KEY",
}
"""Variables that hold the keys of hosts of rented machines, by driver."""

REACH_VARIABLES: Final = frozenset(
    {
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "GIT_SSL_CAINFO",
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
        *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    }
)
"""Which proxies and certificates lead to the network, for host programs."""

DriverName = Literal[
    "bubblewrap", "container", "kubernetes", "e2b", "withruntime", "novita", "none"
]
"""What makes the sandboxes. `none` is no isolation, and never a setting of the file."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model endpoint given by `LLM_BASE_URL` alone."""

    base_url: str
    api_key: str = field(default="", repr=False)
    model: str | None = None
    """None: the endpoint is asked for its models."""
    shape: Shape = "chat"
    """The API that it speaks."""

    @property
    def local(self) -> bool:
        """Whether it is on this machine, where asking it costs nothing."""
        host = urlsplit(self.base_url).hostname or ""
        return host in {"localhost", "::1"} or host.startswith("127.")


@dataclass(frozen=True, slots=True)
class KnownKey:
    """A variable that usually holds a provider's key, and what goes with it."""

    variable: str
    provider: str
    base_url: str
    models: tuple[str, ...]
    """Models of that provider to start with, strongest first."""
    shape: Shape = "chat"
    """The API that it speaks."""


KNOWN_KEYS: Final = (
    KnownKey(
        "DEEPSEEK_API_KEY",
        "deepseek",
        "https://api.deepseek.com",
        ("deepseek-v4-pro", "deepseek-flash"),
    ),
    KnownKey(
        "DASHSCOPE_API_KEY",
        "dashscope",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        ("qwen3-coder-plus", "qwen3-coder-flash"),
    ),
    KnownKey(
        "OPENROUTER_API_KEY",
        "openrouter",
        "https://openrouter.ai/api/v1",
        ("deepseek/deepseek-v3.2", "qwen/qwen3-coder"),
    ),
    KnownKey("OPENAI_API_KEY", "openai", "https://api.openai.com/v1", ("gpt-5.4", "gpt-5.4-mini")),
    KnownKey(
        "ANTHROPIC_API_KEY",
        "anthropic",
        "https://api.anthropic.com/v1",
        ("claude-opus-4-5", "claude-haiku-4-5"),
        "messages",
    ),
)


def shape_at(base_url: str) -> Shape:
    """Return the API that a known provider speaks at that address; chat where none is known."""
    host = urlsplit(base_url).hostname
    known = {urlsplit(key.base_url).hostname: key.shape for key in KNOWN_KEYS}
    return known.get(host, "chat")


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A `turnout.toml` that would be read."""

    path: Path
    named: bool
    """Whether somebody named it, rather than it lying in the current directory."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that was set, each room's part apart."""

    home: Path
    """State folder: record, base layers, models."""
    config_file: Path | None
    """The `turnout.toml` that was read; None where there is none."""
    policy: Policy
    """The one named `default`, or the only one: what `turnout run` is under."""
    policies: tuple[Policy, ...]
    """Every policy of `turnout.toml`; the one above is among them."""
    catalog: Catalog
    """Of `turnout.toml`; without deployments where that names none."""
    connections: Mapping[str, ToolConnection] = field(repr=False)
    """MCP servers whose tools the gateway runs, by name."""
    endpoint: Endpoint | None
    """Used where the catalog names no deployment."""
    agent: AgentConfig
    surface: SurfaceName
    driver: DriverName
    container: ContainerOptions
    kubernetes: KubernetesOptions
    hosted: HostedOptions
    hosted_keys: Mapping[str, str] = field(repr=False)
    """By driver, where the variable of its host's key is set."""
    limits: Limits
    rates: MachineRates
    """What sandboxes cost."""
    redactor: Redactor
    """Knows the secrets of this process."""
    egress: Egress
    """What the policy names, without package mirrors; a secret that is not set is empty."""
    test_command: str | None
    setup: str | None
    """Shell command that sets a workspace up."""
    requirements: tuple[str, ...] | None
    test_paths: TestPaths
    host_environment: Mapping[str, str] = field(repr=False)
    """For host programs such as git, when they act on the user's own repository."""
    service: ServiceOptions
    colour: bool
    observe: ObserveOptions = field(default_factory=ObserveOptions)
    database: str | None = field(default=None, repr=False)
    """URL of a PostgreSQL database, with its password; None: a file in the state folder."""

    @property
    def shares_checkpoints(self) -> bool:
        """Whether what workspaces of the service held is kept for other machines, too."""
        options = self.service.checkpoints
        if options.folder is not None:
            return True
        return self.database is not None if options.database is None else options.database

    def with_model(self, model: str) -> "Settings":
        """Return settings under which every step asks for one model."""
        steps = {kind: replace(step, model=model) for kind, step in self.agent.steps.items()}
        tools = {tool: replace(step, model=model) for tool, step in self.agent.tool_steps.items()}
        endpoint = None if self.endpoint is None else replace(self.endpoint, model=model)
        agent = replace(self.agent, steps=steps, tool_steps=tools)
        return replace(self, agent=agent, endpoint=endpoint)

    def with_driver(self, driver: DriverName) -> "Settings":
        """Return settings under which sandboxes are made by another driver."""
        return replace(self, driver=driver)

    def with_effort(
        self, attempts: int | None, review: Literal["off", "annotate", "block"] | None
    ) -> "Settings":
        """Return settings under which a run goes as far as is given; None leaves what was set."""
        agent = self.agent
        effort = replace(agent, attempts=attempts or agent.attempts, review=review or agent.review)
        return replace(self, agent=effort)

    def with_repositories(self, named: Mapping[str, str]) -> "Settings":
        """Return settings under which a service works on these, too; places by name."""
        book = self.service.repositories
        book = replace(book, named={**book.named, **named})
        return replace(self, service=replace(self.service, repositories=book))

    def with_max_steps(self, steps: int) -> "Settings":
        """Return settings under which the agent ends after `steps` act steps."""
        return replace(self, agent=replace(self.agent, max_steps=steps))
