"""The tables of `turnout.toml`, as they are written."""

from typing import Annotated, Final, Literal

from pydantic import Field, JsonValue

from turnout.core.inference import Objective, TaskKind
from turnout.gateway.config.tables import Rate, Table, Usd, shaped
from turnout.sandbox.container.options import EngineName
from turnout.sandbox.kubernetes.options import PullPolicy
from turnout.settings.values import DriverName

__all__ = [
    "AgentTable",
    "ContainerTable",
    "File",
    "HostedTable",
    "KubernetesTable",
    "McpTable",
    "ProxyTable",
    "SandboxTable",
    "ServiceTable",
    "StepTable",
    "TestsTable",
]

Text = Annotated[str, Field(min_length=1)]

_SERVER: Final = shaped(
    r"[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*",
    "letters, digits and `-`, with single `_` between them, such as `db-server`",
)
_VARIABLE: Final = shaped(
    r"[A-Za-z_][A-Za-z0-9_]*", "the name of a variable: letters, digits and `_`"
)


class StepTable(Table):
    """`[agent.steps.KIND]`."""

    objective: Objective | None = None
    task: TaskKind | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    thinking: bool | None = None
    model: Text | None = None


class McpTable(Table):
    """`[[agent.mcp]]`."""

    name: Annotated[str, _SERVER, Field(max_length=32)]
    command: Annotated[list[Text], Field(min_length=1)]
    env: dict[Annotated[str, _VARIABLE], str] = Field(default_factory=dict)
    allow: list[Text] = Field(default_factory=list)
    timeout: Annotated[Rate, Field(le=120)] = 30.0


class AgentTable(Table):
    """`[agent]`."""

    surface: Literal["guide", "shell", "files"] = "guide"
    max_steps: Annotated[int, Field(ge=1)] | None = None
    max_tool_calls: Annotated[int, Field(ge=1)] | None = None
    max_seconds: Rate | None = None
    max_spend_usd: Usd | None = None
    command_timeout: Rate | None = None
    test_timeout: Rate | None = None
    output_cap: Annotated[int, Field(ge=200)] | None = None
    summarise_above: Annotated[int, Field(ge=200)] | None = None
    repair_samples: Annotated[int, Field(ge=1)] | None = None
    condense_at: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    window: Annotated[int, Field(ge=1_000)] | None = None
    extra_tools: list[Text] | None = None
    connections: list[Text] | None = None
    mcp: list[McpTable] = Field(default_factory=list)
    approvals: list[Text] | None = None
    attempts: Annotated[int, Field(ge=1, le=20)] | None = None
    escalate_after: Annotated[int, Field(ge=1)] | None = None
    review: Literal["off", "annotate", "block"] | None = None
    steps: dict[Literal["plan", "act", "summary", "answer", "review"], StepTable] = Field(
        default_factory=dict
    )
    tool_steps: dict[Text, StepTable] = Field(default_factory=dict)


class ContainerTable(Table):
    """`[sandbox.container]`."""

    engine: EngineName | Literal["auto"] = "auto"
    image: Text = "turnout-sandbox"
    runtime: str = ""
    warm: Annotated[int, Field(ge=0, le=100)] = 0
    ulimits: list[str] = Field(default_factory=list)
    piped: bool = False


class ProxyTable(Table):
    """`[sandbox.kubernetes.proxy]`."""

    host: str = ""
    port: Annotated[int, Field(ge=1, le=65_535)] = 3128
    ports: Annotated[int, Field(ge=1, le=10_000)] = 64
    namespace: Text = "turnout"
    listen: str = ""


class KubernetesTable(Table):
    """`[sandbox.kubernetes]`."""

    image: Text = "turnout-sandbox"
    namespace: Text = "turnout-sandboxes"
    pull_policy: PullPolicy = "IfNotPresent"
    pull_secrets: list[Text] = Field(default_factory=list)
    runtime_class: Text | None = None
    seccomp: Text = "turnout/sandbox.json"
    node_selector: dict[str, str] = Field(default_factory=dict)
    warm_pool: Text | None = None
    proxy: ProxyTable | bool = False
    kubeconfig: Text | None = None
    context: Text | None = None
    start_seconds: Rate = 120.0


class HostedTable(Table):
    """`[sandbox.hosted]`."""

    image: Text | None = None
    python: Text = "/usr/bin/python3"


class SandboxTable(Table):
    """`[sandbox]`."""

    driver: DriverName = "bubblewrap"
    container: ContainerTable = Field(default_factory=ContainerTable)
    kubernetes: KubernetesTable = Field(default_factory=KubernetesTable)
    hosted: HostedTable = Field(default_factory=HostedTable)
    memory_mb: Annotated[int, Field(ge=64)] | None = None
    pids: Annotated[int, Field(ge=16)] | None = None
    cpus: Rate | None = None
    disk_mb: Annotated[int, Field(ge=16)] | None = None
    inodes: Annotated[int, Field(ge=1_000)] | None = None
    idle_seconds: Rate | None = None
    lifetime_hours: Rate | None = None


class TestsTable(Table):
    """`[tests]`."""

    command: Text | None = None
    setup: Text | None = None
    requirements: list[str] | None = None
    patterns: list[Text] | None = None


class ServiceTable(Table):
    """`[service]`."""

    repositories: dict[str, Text] = Field(default_factory=dict)
    servers: list[Text] = Field(default_factory=list)
    workers: Annotated[int, Field(ge=1, le=1_000)] = 2
    per_project: Annotated[int, Field(ge=1)] | None = None
    per_repository: Annotated[int, Field(ge=1)] | None = None


class File(Table):
    """The whole file; the gateway's tables are read by its own room."""

    policy: dict[str, JsonValue] = Field(default_factory=dict)
    policies: dict[str, JsonValue] = Field(default_factory=dict)
    connections: dict[str, JsonValue] = Field(default_factory=dict)
    providers: dict[str, JsonValue] = Field(default_factory=dict)
    deployments: list[JsonValue] = Field(default_factory=list)
    agent: AgentTable = Field(default_factory=AgentTable)
    sandbox: SandboxTable = Field(default_factory=SandboxTable)
    tests: TestsTable = Field(default_factory=TestsTable)
    service: ServiceTable = Field(default_factory=ServiceTable)
