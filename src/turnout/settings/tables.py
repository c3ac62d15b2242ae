"""The tables of `turnout.toml`, as they are written."""

from decimal import Decimal
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, JsonValue

from turnout.core.inference import Objective, TaskKind
from turnout.core.service.forges import ForgeKind
from turnout.gateway.config.tables import Rate, Table, Usd, shaped
from turnout.sandbox.container.options import EngineName
from turnout.sandbox.kubernetes.options import PullPolicy
from turnout.settings.values import DriverName

__all__ = [
    "AgentTable",
    "ContainerTable",
    "File",
    "ForgeTable",
    "HostedTable",
    "KubernetesTable",
    "McpTable",
    "NotifyTable",
    "ObserveTable",
    "ProxyTable",
    "QueueTable",
    "RatesTable",
    "RepositoryTable",
    "RetentionTable",
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

_QUEUE: Final = shaped(
    r"[A-Za-z0-9._:-]{1,200}", "at most 200 letters, digits and `. _ : -`, such as `turnout.runs`"
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


class RatesTable(Table):
    """`[sandbox.rates]`."""

    cpu_hour_usd: Usd = Decimal(0)
    memory_gib_hour_usd: Usd = Decimal(0)
    sandbox_hour_usd: Usd = Decimal(0)


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
    rates: RatesTable = Field(default_factory=RatesTable)


class TestsTable(Table):
    """`[tests]`."""

    command: Text | None = None
    setup: Text | None = None
    requirements: list[str] | None = None
    patterns: list[Text] | None = None


class RetentionTable(Table):
    """`[service.retention]`, in days."""

    runs: Rate | None = None
    receipts: Rate | None = None
    events: Rate | None = None
    audit: Rate | None = None
    conversations: Rate = 30.0
    workspaces: Annotated[float, Field(ge=2)] = 30.0


class ForgeTable(Table):
    """`[service.forges.NAME]`."""

    kind: ForgeKind
    api: Text
    secret_env: Text
    token_env: Text
    key: Text
    repositories: Annotated[dict[Text, Text], Field(min_length=1)]
    label: Text = "turnout"
    review_label: Text = "turnout-review"
    starters: Literal["write", "maintain", "admin"] = "write"


class QueueTable(Table):
    """`[service.queue]`."""

    url_env: Text
    name: Annotated[str, _QUEUE] = "turnout.runs"
    dead: Annotated[str, _QUEUE] | None = None
    group: Annotated[str, _QUEUE] = "turnout"
    key: Text | None = None


class RepositoryTable(Table):
    """`[service.repositories.NAME]`, or the place alone."""

    url: Text | None = None
    path: Text | None = None
    credential_env: Annotated[str, _VARIABLE] | None = None
    push: bool = False


def _repository(given: JsonValue) -> JsonValue:
    """Return the table that a place alone stands for."""
    if not isinstance(given, str):
        return given
    return {"url": given} if "://" in given else {"path": given}


class NotifyTable(Table):
    """`[service.notify]`."""

    secret_env: Annotated[str, _VARIABLE] | None = None
    allow_private: bool = False


class ServiceTable(Table):
    """`[service]`."""

    repositories: dict[str, Annotated[RepositoryTable, BeforeValidator(_repository)]] = Field(
        default_factory=dict
    )
    servers: list[Text] = Field(default_factory=list)
    workers: Annotated[int, Field(ge=1, le=1_000)] = 2
    per_project: Annotated[int, Field(ge=1)] | None = None
    per_repository: Annotated[int, Field(ge=1)] | None = None
    queued_per_project: Annotated[int, Field(ge=1)] = 1_000
    checkpoints: Text = "auto"
    checkpoint_mb: Annotated[int, Field(ge=1, le=10_000)] = 64
    retention: RetentionTable = Field(default_factory=RetentionTable)
    forges: dict[Text, ForgeTable] = Field(default_factory=dict)
    notify: NotifyTable = Field(default_factory=NotifyTable)
    queue: QueueTable | None = None


class ObserveTable(Table):
    """`[observe]`."""

    content: bool = False
    propagate: bool = False
    metrics_key_env: Annotated[str, _VARIABLE] | None = None


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
    observe: ObserveTable = Field(default_factory=ObserveTable)
    service: ServiceTable = Field(default_factory=ServiceTable)
