"""Providers and deployments of `turnout.toml`: who serves which model."""

from collections.abc import Callable, Mapping

from turnout.core.ids import DeploymentId, ModelId, ProviderName
from turnout.core.json import JsonObject
from turnout.core.money import Price
from turnout.errors import ConfigError
from turnout.gateway.catalog import Catalog, Deployment, Provider, StatedQuality
from turnout.gateway.config.accounts import read_account
from turnout.gateway.config.addresses import sendable_key
from turnout.gateway.config.catalog_tables import CatalogTable, DeploymentTable, ProviderTable
from turnout.gateway.config.prices import known_price
from turnout.gateway.config.tables import close_match, read_table

__all__ = ["parse_catalog"]


def parse_catalog(
    table: JsonObject,
    secret: Callable[[str], str | None],
    price_of: Callable[[str, str], Price | None] = known_price,
) -> Catalog:
    """Return the catalog that `providers` and `deployments` of `table` describe.

    `secret` gives the value of a variable, `price_of` the list price for a base URL and a model
    name where the table states none. A provider whose variable is not set is marked, and no error:
    it matters only to those who would use it. `ConfigError` names a wrong key.
    """
    wanted = {name: table[name] for name in ("providers", "deployments") if name in table}
    read = read_table(CatalogTable, wanted, "")
    providers = {
        ProviderName(name): _provider(name, provider, secret)
        for name, provider in read.providers.items()
    }
    deployments: dict[DeploymentId, Deployment] = {}
    for at, row in enumerate(read.deployments):
        deployment = _deployment(row, providers, price_of, f"deployments[{at}]")
        if deployment.id in deployments:
            raise ConfigError(
                f"`deployments[{at}]` is a second {deployment.id}.",
                mend="Give it another model id, or remove it.",
            )
        deployments[deployment.id] = deployment
    return Catalog(providers, tuple(deployments.values()))


def _provider(name: str, read: ProviderTable, secret: Callable[[str], str | None]) -> Provider:
    key = ""
    if read.api_key_env is not None:
        try:
            key = sendable_key(secret(read.api_key_env) or "")
        except ValueError as error:
            raise ConfigError(
                f"The variable {read.api_key_env} {error}.", mend="Set it to the key alone."
            ) from error
    return Provider(
        name=ProviderName(name),
        base_url=read.base_url,
        api_key=key,
        unset_key="" if key else read.api_key_env or "",
        connect_timeout=read.connect_timeout,
        idle_timeout=read.idle_timeout,
        shape=read.shape,
        key_header=read.key_header or ("x-api-key" if read.shape == "messages" else "bearer"),
        headers=read.headers,
        account=read_account(read.account, f"providers.{name}.account"),
        region=read.region,
        labels=frozenset(read.labels),
        exact_path=read.exact_path,
    )


def _deployment(
    row: DeploymentTable,
    providers: Mapping[ProviderName, Provider],
    price_of: Callable[[str, str], Price | None],
    where: str,
) -> Deployment:
    provider = providers.get(ProviderName(row.provider))
    if provider is None:
        raise ConfigError(
            f"`{where}.provider` names `{row.provider}`, which `providers` does not have.",
            mend=close_match(row.provider, list(providers))
            or f"Add `[providers.{row.provider}]` with its `base_url`.",
        )
    if row.profile == "branch" and provider.shape != "chat":
        raise ConfigError(
            f"`{where}.profile` is `branch`, which takes a provider whose `shape` is `chat`: "
            "no other tells what else a model might have said.",
            mend="Say `repair`.",
        )
    name = row.name or row.model
    return Deployment(
        id=DeploymentId(f"{row.provider}/{row.model}"),
        model=ModelId(row.model),
        provider=provider.name,
        upstream_name=name,
        price=row.price.price() if row.price else price_of(provider.base_url, name),
        context_window=row.context_window,
        max_output=row.max_output,
        tools=row.tools,
        enforces_tool_choice=row.enforces_tool_choice,
        calls_in_text=row.calls_in_text,
        json_schema=row.json_schema,
        thinking_on=row.thinking.on,
        thinking_off=row.thinking.off,
        profile=row.profile,
        quality={
            kind: StatedQuality(quality.value, quality.source, quality.sample_size, quality.date)
            for kind, quality in row.quality.items()
        },
        modalities=frozenset(row.modalities),
        caching=row.caching,
        reasoning_field=row.reasoning_field,
        reasoning_back=row.reasoning_back,
        max_tokens_field=row.max_tokens_field,
        leaves_out=frozenset(row.leaves_out),
        labels=frozenset(row.labels),
        region=row.region,
        stated_ttft_ms=row.ttft_ms,
        stated_tokens_per_second=row.tokens_per_second,
    )
