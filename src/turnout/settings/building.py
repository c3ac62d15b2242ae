"""From the tables of `turnout.toml` to what each room takes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Final

from turnout.agent.approval import check_rules
from turnout.agent.base import AgentConfig, StepConfig
from turnout.agent.tools.surfaces import check_tools, surface_of
from turnout.core.govern.connections import Connection
from turnout.core.govern.revisions import DEFAULT_POLICY
from turnout.core.inference import StepKind
from turnout.core.money import usd_to_micros
from turnout.core.policies import EgressPolicy, Policy
from turnout.core.service.checkpoints import CheckpointOptions
from turnout.core.service.options import NotifyOptions, ServiceOptions
from turnout.core.service.retention import Retention
from turnout.core.spend.rates import MachineRates
from turnout.errors import ConfigError
from turnout.gateway.config.tables import close_match
from turnout.sandbox.base import BoundSecret, Egress, Limits
from turnout.sandbox.container.options import ContainerOptions
from turnout.sandbox.egress.rules import parse_rule
from turnout.sandbox.kubernetes.options import KubernetesOptions, ProxyAddress
from turnout.sandbox.testrun import TestPaths
from turnout.settings.forges import forges_of
from turnout.settings.queues import queue_of
from turnout.settings.repositories import book_of
from turnout.settings.tables import (
    AgentTable,
    ContainerTable,
    KubernetesTable,
    ProxyTable,
    RatesTable,
    RetentionTable,
    SandboxTable,
    ServiceTable,
    TestsTable,
)
from turnout.settings.values import DriverName

__all__ = [
    "agent_config",
    "check_connections",
    "container_options",
    "default_policy",
    "driver_name",
    "egress_of",
    "kubernetes_options",
    "limits_of",
    "rates_of",
    "service_options",
    "test_paths_of",
]

_MIB: Final = 1 << 20
_LONGEST_RESULT: Final = 1_000_000
"""Characters that are kept of a result; the model reads on in them as far as it wants."""
_LISTS: Final = ("approvals", "connections", "extra_tools")
_BUILT: Final = frozenset({"steps", "tool_steps", "max_spend", "mcp", *_LISTS})


def agent_config(table: AgentTable) -> AgentConfig:
    """Return how the agent is to work."""
    given = {
        key: value
        for key in (f.name for f in fields(AgentConfig))
        if key not in _BUILT and (value := getattr(table, key)) is not None
    }
    for key in _LISTS:
        given[key] = tuple(getattr(table, key) or ())
    if table.max_spend_usd is not None:
        given["max_spend"] = usd_to_micros(table.max_spend_usd)
    base = replace(AgentConfig(), **given)
    surface_of(table.surface, base.extra_tools)
    check_tools(table.tool_steps)
    servers = _servers(table)
    check_rules(base.approvals, base.connections, [server.name for server in servers])
    steps: dict[StepKind, StepConfig] = dict(base.steps)
    for kind, step in table.steps.items():
        steps[kind] = replace(steps[kind], **step.model_dump(exclude_unset=True))
    own = {
        name: replace(steps["act"], **step.model_dump(exclude_unset=True))
        for name, step in table.tool_steps.items()
    }
    return replace(base, steps=steps, tool_steps=own, mcp=servers)


def _servers(table: AgentTable) -> tuple[Connection, ...]:
    taken = {wanted.partition("/")[0] for wanted in table.connections or ()}
    for server in table.mcp:
        if server.name in taken:
            raise ConfigError(
                f"The MCP server {server.name!r} of `agent.mcp` is not the only one of its name.",
                mend="Give each of these, and of `agent.connections`, a name of its own.",
            )
        taken.add(server.name)
    return tuple(
        Connection(
            server.name,
            command=tuple(server.command),
            environment=server.env,
            allow=tuple(server.allow),
            timeout=server.timeout,
            longest_result=_LONGEST_RESULT,
        )
        for server in table.mcp
    )


def check_connections(table: AgentTable, known: Collection[str]) -> None:
    """Raise `ConfigError` where the agent is to use a connection that is not there."""
    for wanted in table.connections or ():
        name = wanted.partition("/")[0]
        if name not in known:
            raise ConfigError(
                f"`agent.connections` names {name!r}, which is no connection.",
                mend=close_match(name, sorted(known)) or f"Write a table `[connections.{name}]`.",
            )


def default_policy(policies: Sequence[Policy]) -> Policy:
    """Return the policy that counts where none is named."""
    named = {policy.name: policy for policy in policies}
    if DEFAULT_POLICY in named or not named:
        return named.get(DEFAULT_POLICY, Policy())
    if len(policies) > 1:
        raise ConfigError(
            f"None of the policies {', '.join(sorted(named))} is named {DEFAULT_POLICY!r}.",
            mend="Call the one that counts where none is named `[policy]`.",
        )
    return policies[0]


def driver_name(table: SandboxTable) -> DriverName:
    """Return the driver; `ConfigError` for `none`, which is no setting."""
    if table.driver == "none":
        raise ConfigError(
            '`sandbox.driver` is "none", which is no isolation.',
            mend="Where that is meant, say so at each run: `turnout run --sandbox none`.",
        )
    return table.driver


def container_options(table: ContainerTable) -> ContainerOptions:
    """Return the options of the container driver."""
    return ContainerOptions(
        engine=table.engine,
        image=table.image,
        runtime=table.runtime,
        warm=table.warm,
        ulimits=tuple(table.ulimits),
        piped=table.piped,
    )


def kubernetes_options(table: KubernetesTable) -> KubernetesOptions:
    """Return the options of the Kubernetes driver."""
    proxy = ProxyTable() if table.proxy is True else table.proxy
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


def egress_of(policy: EgressPolicy, env: Mapping[str, str]) -> Egress:
    """Return what the policy lets sandboxes reach, secrets filled in from `env`."""
    rules = [parse_rule(text) for text in policy.allow]
    rules += [parse_rule(text, private=True) for text in policy.private]
    secrets = (BoundSecret(s.variable, s.host, env.get(s.source, "")) for s in policy.secrets)
    own = env.get("SSL_CERT_FILE")
    return Egress(tuple(rules), tuple(secrets), ca_files=(own,) if own else ())


def limits_of(table: SandboxTable) -> Limits:
    """Return the limits of a sandbox; what is not set stays as it is by default."""
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


def rates_of(table: RatesTable) -> MachineRates:
    """Return what sandboxes cost."""
    return MachineRates(
        usd_to_micros(table.cpu_hour_usd),
        usd_to_micros(table.memory_gib_hour_usd),
        usd_to_micros(table.sandbox_hour_usd),
    )


def service_options(table: ServiceTable) -> ServiceOptions:
    """Return how the service is set up; `ConfigError` for what cannot be."""
    return ServiceOptions(
        repositories=book_of(table.repositories, table.servers),
        workers=table.workers,
        per_project=table.per_project,
        per_repository=table.per_repository,
        queued_per_project=table.queued_per_project,
        retention=_retention(table.retention),
        checkpoints=_checkpoints(table),
        forges=forges_of(table.forges),
        notify=NotifyOptions(table.notify.secret_env or "", table.notify.allow_private),
        queue=queue_of(table.queue),
    )


def _checkpoints(table: ServiceTable) -> CheckpointOptions:
    options = CheckpointOptions(most_bytes=table.checkpoint_mb * _MIB)
    match table.checkpoints:
        case "auto":
            return options
        case "database" | "local":
            return replace(options, database=table.checkpoints == "database")
        case place if Path(place).is_absolute():
            return replace(options, folder=Path(place))
        case place:
            raise ConfigError(
                f"`service.checkpoints` is {place!r}.",
                mend="Write `auto`, `local`, `database`, or the path of a folder that all machines "
                "have mounted.",
            )


def _retention(table: RetentionTable) -> Retention:
    def age(days: float | None) -> timedelta | None:
        return None if days is None else timedelta(days=days)

    try:
        return Retention(
            runs=age(table.runs),
            receipts=age(table.receipts),
            events=age(table.events),
            audit=age(table.audit),
            conversations=timedelta(days=table.conversations),
            workspaces=timedelta(days=table.workspaces),
        )
    except OverflowError as error:
        raise ConfigError(
            "`service.retention` keeps something for longer than there are dates.",
            mend="To keep it for ever leave the key out.",
        ) from error


def test_paths_of(table: TestsTable) -> TestPaths:
    """Return which paths are those of tests; `ConfigError` for a pattern that is none."""
    paths = TestPaths(tuple(table.patterns or ()))
    paths.check()
    return paths
