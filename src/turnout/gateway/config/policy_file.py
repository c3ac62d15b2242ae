"""The tables `[policy]` and `[policies.NAME]`: which models, which tools, how much."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches

from turnout.core.ids import ModelId
from turnout.core.json import JsonObject, JsonValue
from turnout.core.money import usd_to_micros
from turnout.core.policies import (
    Alias,
    EgressPolicy,
    EvidenceBar,
    PinnedFallback,
    Policy,
    PoolRule,
    SecretBinding,
    SessionCaps,
    TaskRule,
    ToolRule,
)
from turnout.errors import ConfigError
from turnout.gateway.catalog import Catalog
from turnout.gateway.config.policy_tables import (
    EgressTable,
    PolicyTable,
    PoolTable,
    ToolsTable,
)
from turnout.gateway.config.tables import close_match, read_table

__all__ = ["check_models", "models_named", "parse_policies", "parse_policy"]


def parse_policies(document: JsonObject) -> tuple[Policy, ...]:
    """Return every policy of a whole configuration file, or of a file of policies alone.

    `[policy]` is the one named `default` unless it says otherwise, `[policies.NAME]` the one of
    that name. Other tables are not looked at, but one whose name comes close is a mistake.
    """
    for key in document:
        if key not in {"policy", "policies"} and get_close_matches(key, ["policy", "policies"]):
            raise ConfigError(
                f"`{key}` is no table.", mend="Write `[policy]` or `[policies.NAME]`."
            )
    found: list[Policy] = []
    if "policy" in document:
        found.append(parse_policy(_table(document["policy"], "policy")))
    for name, value in _table(document.get("policies", {}), "policies").items():
        where = f"policies.{name}"
        table = _table(value, where)
        if table.get("name", name) != name:
            raise ConfigError(
                f"`{where}.name` is {table['name']!r}, the table says {name!r}.",
                mend="Leave `name` out: the table's own name counts.",
            )
        found.append(parse_policy({**table, "name": name}, where))
    names = Counter(policy.name for policy in found)
    if twice := next((name for name, count in names.items() if count > 1), None):
        raise ConfigError(
            f"There are two policies named {twice!r}.",
            mend="`[policy]` without a `name` is named `default`; name one of them otherwise.",
        )
    return tuple(found)


def parse_policy(table: JsonObject, where: str = "policy") -> Policy:
    """Return the policy that one table describes; `ConfigError` names a wrong key below `where`.

    A tool list without a mode is a dry run; without the table `tools` any tool may be declared.
    """
    read = read_table(PolicyTable, table, where)
    pinned = read.pinned
    if (pinned.fallback == "model") != (pinned.model is not None):
        raise ConfigError(
            f'`{where}.pinned.model` goes with `fallback = "model"`, and only with that.',
            mend="Set both, or neither.",
        )
    spend = read.session.max_spend_usd
    return Policy(
        name=read.name,
        pool=_pool(read.pool),
        objective=read.objective,
        tools=_tools(read.tools) if read.tools else ToolRule(),
        session=SessionCaps(
            max_requests=read.session.max_requests,
            max_spend=None if spend is None else usd_to_micros(spend),
        ),
        task_rules=tuple(TaskRule(kind, ModelId(rule.model)) for kind, rule in read.tasks.items()),
        pinned=PinnedFallback(pinned.fallback, ModelId(pinned.model) if pinned.model else None),
        min_quality=read.min_quality,
        egress=_egress(read.egress),
        evidence=_evidence(read, where),
        aliases=tuple(
            Alias(name, to.model, to.optimize, to.task) for name, to in read.aliases.items()
        ),
        caching=read.caching,
        provider_keys=tuple(read.provider_keys.items()),
        reroute_refusals=read.reroute_refusals,
        keep_replies_hours=read.keep_replies_hours,
        allow_unpriced=read.allow_unpriced,
    )


def models_named(policy: Policy) -> Iterator[tuple[str, str]]:
    """Yield each place of a policy that names a model or a deployment, and the name."""
    for name in policy.pool.models:
        yield "pool", name
    for name in policy.pool.exclude:
        yield "pool.exclude", name
    for rule in policy.task_rules:
        yield f"tasks.{rule.task}.model", rule.model
    if policy.pinned.model is not None:
        yield "pinned.model", policy.pinned.model
    for alias in policy.aliases:
        if alias.model != "auto":
            yield f"aliases.{alias.name}", alias.model


def check_models(policy: Policy, catalog: Catalog, where: str = "policy") -> None:
    """Raise `ConfigError` where the policy names what the catalog does not have."""
    models = {deployment.model for deployment in catalog.deployments}
    names = sorted({*models, *(deployment.id for deployment in catalog.deployments)})
    for key, name in models_named(policy):
        if name not in names:
            raise ConfigError(
                f"`{where}.{key}` names the model {name!r}, which no deployment has.",
                mend=close_match(name, sorted(models)),
            )
    _check_providers(policy.pool.providers, f"{where}.pool.providers", catalog)
    _check_providers([name for name, _ in policy.provider_keys], f"{where}.provider_keys", catalog)


def _check_providers(named: Sequence[str], key: str, catalog: Catalog) -> None:
    known = sorted(catalog.providers)
    for name in named:
        if name not in known:
            raise ConfigError(
                f"`{key}` names the provider {name!r}, which is not configured.",
                mend=close_match(name, known),
            )


def _table(value: JsonValue, where: str) -> Mapping[str, JsonValue]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"`{where}` must be a table.", mend=f"Write `[{where}]`.")
    return value


def _evidence(read: PolicyTable, where: str) -> EvidenceBar:
    bar = read.evidence
    if read.min_tool_success is None:
        return EvidenceBar(bar.min_tool_success, bar.min_samples, bar.max_age_days)
    if "min_tool_success" in bar.model_fields_set:
        raise ConfigError(
            f"`{where}.min_tool_success` is short for `{where}.evidence.min_tool_success`.",
            mend="Leave one of them out.",
        )
    return EvidenceBar(read.min_tool_success, bar.min_samples, bar.max_age_days)


def _pool(table: PoolTable) -> PoolRule:
    dear, dearest = table.max_input_usd, table.max_output_usd
    return PoolRule(
        models=tuple(table.models),
        exclude=tuple(table.exclude),
        providers=tuple(table.providers),
        regions=tuple(table.regions),
        labels=tuple(table.labels),
        min_context=table.min_context,
        max_input_price=None if dear is None else usd_to_micros(dear),
        max_output_price=None if dearest is None else usd_to_micros(dearest),
        min_tool_success=table.min_tool_success,
    )


def _tools(table: ToolsTable) -> ToolRule:
    return ToolRule(
        table.mode,
        tuple(table.allow),
        tuple((kind, tuple(names)) for kind, names in table.by_kind.items()),
        tuple(table.read_only),
    )


def _egress(table: EgressTable) -> EgressPolicy:
    return EgressPolicy(
        allow=tuple(table.allow),
        private=tuple(table.private),
        packages=table.packages,
        secrets=tuple(
            SecretBinding(variable, secret.host, secret.env or variable)
            for variable, secret in table.secrets.items()
        ),
    )
