"""What users may set, and the only reader of the environment.

`turnout.toml` is read from the current directory, from `--config` or from `TURNOUT_CONFIG`, never
searched for elsewhere. Whether a file that nobody named may be trusted is for the caller to judge:
a repository must not configure the host that works on it.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import Field, JsonValue

from turnout.agent.base import AgentConfig, StepConfig
from turnout.core.inference import Objective, StepKind, TaskKind
from turnout.core.policies import EgressPolicy, Policy
from turnout.core.tasks import SurfaceName
from turnout.errors import ConfigError
from turnout.gateway.catalog import Catalog
from turnout.gateway.config.addresses import http_address, sendable_key
from turnout.gateway.config.catalog_file import parse_catalog
from turnout.gateway.config.policy_file import check_models, parse_policy
from turnout.gateway.config.tables import Rate, Table, read_table
from turnout.sandbox.base import BoundSecret, Egress, Limits
from turnout.sandbox.container.options import ContainerOptions, EngineName
from turnout.sandbox.egress.rules import parse_rule
from turnout.sandbox.hosted.options import HostedOptions
from turnout.sandbox.kubernetes.options import KubernetesOptions, ProxyAddress, PullPolicy

__all__ = [
    "CONFIG_NAME",
    "HOSTED_KEYS",
    "KNOWN_KEYS",
    "ConfigFile",
    "DriverName",
    "Endpoint",
    "KnownKey",
    "Settings",
    "endpoint_present",
    "find_config",
    "keys_present",
    "load_settings",
    "secret_named",
    "state_folder",
]

CONFIG_NAME: Final = "turnout.toml"

_MIB: Final = 1 << 20

HOSTED_KEYS: Final = {
    "e2b": "E2B_API_KEY",
    "novita": "NOVITA_API_KEY",
    "withruntime": "RUNTIME_API_KEY",
}
"""Variables that hold the keys of hosts of rented machines, by driver."""

_HOST_VARIABLES: Final = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "LANG", "XDG_CONFIG_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR"}
)
"""What host programs that we start on the user's behalf are told of the environment."""


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
)


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
    catalog: Catalog
    """Of `turnout.toml`; without deployments where that names none."""
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
    egress: Egress
    """What the policy names, without package mirrors; a secret that is not set is empty."""
    test_command: str | None
    requirements: tuple[str, ...] | None
    host_environment: Mapping[str, str] = field(repr=False)
    """For host programs such as git, when they act on the user's own repository."""
    colour: bool

    def with_model(self, model: str) -> "Settings":
        """Return settings under which every step asks for one model."""
        steps = {kind: replace(step, model=model) for kind, step in self.agent.steps.items()}
        endpoint = None if self.endpoint is None else replace(self.endpoint, model=model)
        return replace(self, agent=replace(self.agent, steps=steps), endpoint=endpoint)

    def with_driver(self, driver: DriverName) -> "Settings":
        """Return settings under which sandboxes are made by another driver."""
        return replace(self, driver=driver)

    def with_max_steps(self, steps: int) -> "Settings":
        """Return settings under which the agent ends after `steps` act steps."""
        return replace(self, agent=replace(self.agent, max_steps=steps))


_Text = Annotated[str, Field(min_length=1)]


class _StepTable(Table):
    objective: Objective | None = None
    task: TaskKind | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    thinking: bool | None = None
    model: _Text | None = None


class _AgentTable(Table):
    surface: SurfaceName = "guide"
    max_steps: Annotated[int, Field(ge=1)] | None = None
    command_timeout: Rate | None = None
    test_timeout: Rate | None = None
    output_cap: Annotated[int, Field(ge=200)] | None = None
    summarise_above: Annotated[int, Field(ge=200)] | None = None
    repair_samples: Annotated[int, Field(ge=1)] | None = None
    steps: dict[Literal["plan", "act", "summary", "answer"], _StepTable] = Field(
        default_factory=dict
    )


class _ContainerTable(Table):
    engine: EngineName | Literal["auto"] = "auto"
    image: _Text = "turnout-sandbox"
    runtime: str = ""
    warm: Annotated[int, Field(ge=0, le=100)] = 0
    ulimits: list[str] = Field(default_factory=list)
    piped: bool = False


class _ProxyTable(Table):
    host: str = ""
    port: Annotated[int, Field(ge=1, le=65_535)] = 3128
    ports: Annotated[int, Field(ge=1, le=10_000)] = 64
    namespace: _Text = "turnout"
    listen: str = ""


class _KubernetesTable(Table):
    image: _Text = "turnout-sandbox"
    namespace: _Text = "turnout-sandboxes"
    pull_policy: PullPolicy = "IfNotPresent"
    pull_secrets: list[_Text] = Field(default_factory=list)
    runtime_class: _Text | None = None
    seccomp: _Text = "turnout/sandbox.json"
    node_selector: dict[str, str] = Field(default_factory=dict)
    warm_pool: _Text | None = None
    proxy: _ProxyTable | bool = False
    kubeconfig: _Text | None = None
    context: _Text | None = None
    start_seconds: Rate = 120.0


class _HostedTable(Table):
    image: _Text | None = None
    python: _Text = "/usr/bin/python3"


class _SandboxTable(Table):
    driver: DriverName = "bubblewrap"
    container: _ContainerTable = Field(default_factory=_ContainerTable)
    kubernetes: _KubernetesTable = Field(default_factory=_KubernetesTable)
    hosted: _HostedTable = Field(default_factory=_HostedTable)
    memory_mb: Annotated[int, Field(ge=64)] | None = None
    pids: Annotated[int, Field(ge=16)] | None = None
    cpus: Rate | None = None
    disk_mb: Annotated[int, Field(ge=16)] | None = None
    inodes: Annotated[int, Field(ge=1_000)] | None = None
    idle_seconds: Rate | None = None
    lifetime_hours: Rate | None = None


class _TestsTable(Table):
    command: _Text | None = None
    requirements: list[str] | None = None


class _File(Table):
    policy: dict[str, JsonValue] = Field(default_factory=dict)
    providers: dict[str, JsonValue] = Field(default_factory=dict)
    deployments: list[JsonValue] = Field(default_factory=list)
    agent: _AgentTable = Field(default_factory=_AgentTable)
    sandbox: _SandboxTable = Field(default_factory=_SandboxTable)
    tests: _TestsTable = Field(default_factory=_TestsTable)


def load_settings(
    *,
    config: Path | None = None,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> Settings:
    """Read `turnout.toml` and the environment; `ConfigError` names the table and key.

    None for `environment` and `directory` stands for the process's own.
    """
    env = os.environ if environment is None else environment
    found = find_config(config=config, environment=env, directory=directory)
    path = None if found is None else found.path
    try:
        return _settings(path, _read(path), env)
    except ConfigError as error:
        raise ConfigError(
            f"{path}: {error.message}" if path else error.message, mend=error.mend
        ) from error


def find_config(
    *,
    config: Path | None = None,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> ConfigFile | None:
    """Return the file that `load_settings` would read, without looking into it; None: none.

    `ConfigError` where one was named that is not there.
    """
    env = os.environ if environment is None else environment
    folder = Path.cwd() if directory is None else directory
    named = config or (Path(env["TURNOUT_CONFIG"]) if env.get("TURNOUT_CONFIG") else None)
    path = folder / (named or CONFIG_NAME)
    if path.is_file():
        return ConfigFile(path, named is not None)
    if named is None:
        return None
    raise ConfigError(
        f"There is no configuration file {path}.",
        mend="Write one with `turnout init`, or leave --config and TURNOUT_CONFIG out.",
    )


def state_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Return where record, base layers and models are kept; it may not exist yet.

    For root it is /var/lib/turnout, since sandboxes run under other users' ids and must be able
    to reach into it.
    """
    env = os.environ if environment is None else environment
    if env.get("TURNOUT_HOME"):
        return Path(env["TURNOUT_HOME"]).absolute()
    if os.geteuid() == 0:
        return Path("/var/lib/turnout")
    if env.get("XDG_STATE_HOME"):
        return Path(env["XDG_STATE_HOME"]).absolute() / "turnout"
    return Path(env.get("HOME") or Path.home()) / ".local/state/turnout"


def keys_present(environment: Mapping[str, str] | None = None) -> tuple[KnownKey, ...]:
    """Return the usual provider keys that are set; their values are not looked at."""
    env = os.environ if environment is None else environment
    return tuple(key for key in KNOWN_KEYS if env.get(key.variable))


def endpoint_present(environment: Mapping[str, str] | None = None) -> Endpoint | None:
    """Return the endpoint of LLM_BASE_URL; `ConfigError` where that is no address."""
    return _endpoint(os.environ if environment is None else environment)


def secret_named(variable: str, environment: Mapping[str, str] | None = None) -> str:
    """Return the value of a variable that the user named; `ConfigError` where it is not set."""
    value = _key(os.environ if environment is None else environment, variable)
    if not value:
        raise ConfigError(
            f"The environment variable {variable} is not set.", mend=f"Set {variable} to the key."
        )
    return value


def _read(path: Path | None) -> _File:
    if path is None:
        return _File()
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The file cannot be read: {error}.") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"The file is not valid TOML: {error}.") from error
    return read_table(_File, table, "")


def _settings(path: Path | None, table: _File, env: Mapping[str, str]) -> Settings:
    policy = parse_policy(table.policy)
    catalog = parse_catalog(
        {"providers": table.providers, "deployments": table.deployments}, env.get
    )
    if catalog.deployments:
        check_models(policy, catalog)
    return Settings(
        home=state_folder(env),
        config_file=path,
        policy=policy,
        catalog=catalog,
        endpoint=_endpoint(env),
        agent=_agent(table.agent),
        surface=table.agent.surface,
        driver=_driver(table.sandbox),
        container=_container(table.sandbox.container),
        kubernetes=_kubernetes(table.sandbox.kubernetes),
        hosted=HostedOptions(table.sandbox.hosted.image, table.sandbox.hosted.python),
        hosted_keys={name: env[key] for name, key in HOSTED_KEYS.items() if env.get(key)},
        limits=_limits(table.sandbox),
        egress=_egress(policy.egress, env),
        test_command=table.tests.command,
        requirements=_optional_tuple(table.tests.requirements),
        host_environment={k: v for k, v in env.items() if k in _HOST_VARIABLES},
        colour=not env.get("NO_COLOR"),
    )


def _endpoint(env: Mapping[str, str]) -> Endpoint | None:
    url = env.get("LLM_BASE_URL", "").strip()
    if not url:
        return None
    try:
        address = http_address(url)
    except ValueError as error:
        raise ConfigError(
            f"LLM_BASE_URL {error}.",
            mend="Give the address up to and including /v1, and the key in LLM_API_KEY.",
        ) from error
    return Endpoint(address, _key(env, "LLM_API_KEY"), env.get("LLM_MODEL", "").strip() or None)


def _key(env: Mapping[str, str], variable: str) -> str:
    try:
        return sendable_key(env.get(variable, ""))
    except ValueError as error:
        raise ConfigError(
            f"The variable {variable} {error}.", mend="Set it to the key alone."
        ) from error


def _agent(table: _AgentTable) -> AgentConfig:
    given = {
        key: value
        for key in (f.name for f in fields(AgentConfig))
        if key != "steps" and (value := getattr(table, key)) is not None
    }
    base = replace(AgentConfig(), **given)
    steps: dict[StepKind, StepConfig] = dict(base.steps)
    for kind, step in table.steps.items():
        steps[kind] = replace(steps[kind], **step.model_dump(exclude_unset=True))
    return replace(base, steps=steps)


def _driver(table: _SandboxTable) -> DriverName:
    if table.driver == "none":
        raise ConfigError(
            '`sandbox.driver` is "none", which is no isolation.',
            mend="Where that is meant, say so at each run: `turnout run --sandbox none`.",
        )
    return table.driver


def _container(table: _ContainerTable) -> ContainerOptions:
    return ContainerOptions(
        engine=table.engine,
        image=table.image,
        runtime=table.runtime,
        warm=table.warm,
        ulimits=tuple(table.ulimits),
        piped=table.piped,
    )


def _kubernetes(table: _KubernetesTable) -> KubernetesOptions:
    proxy = _ProxyTable() if table.proxy is True else table.proxy
    return KubernetesOptions(
        image=table.image,
        namespace=table.namespace,
        pull_policy=table.pull_policy,
        pull_secrets=tuple(table.pull_secrets),
        runtime_class=table.runtime_class,
        seccomp=None if table.seccomp == "runtime" else table.seccomp,
        node_selector=tuple(table.node_selector.items()),
        warm_pool=table.warm_pool,
        proxy=ProxyAddress(**proxy.model_dump()) if proxy else None,
        kubeconfig=Path(table.kubeconfig) if table.kubeconfig else None,
        context=table.context,
        start_seconds=table.start_seconds,
    )


def _egress(policy: EgressPolicy, env: Mapping[str, str]) -> Egress:
    rules = [parse_rule(text) for text in policy.allow]
    rules += [parse_rule(text, private=True) for text in policy.private]
    secrets = (BoundSecret(s.variable, s.host, env.get(s.source, "")) for s in policy.secrets)
    own = env.get("SSL_CERT_FILE")
    return Egress(tuple(rules), tuple(secrets), ca_files=(own,) if own else ())


def _limits(table: _SandboxTable) -> Limits:
    limits = Limits()
    return replace(
        limits,
        memory_bytes=table.memory_mb * _MIB if table.memory_mb else limits.memory_bytes,
        pids=table.pids or limits.pids,
        cpus=table.cpus or limits.cpus,
        disk_bytes=table.disk_mb * _MIB if table.disk_mb else limits.disk_bytes,
        inodes=table.inodes or limits.inodes,
        idle_seconds=table.idle_seconds or limits.idle_seconds,
        lifetime_seconds=table.lifetime_hours * 3600
        if table.lifetime_hours
        else limits.lifetime_seconds,
    )


def _optional_tuple(items: list[str] | None) -> tuple[str, ...] | None:
    return None if items is None else tuple(items)
