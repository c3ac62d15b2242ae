"""The tables `[providers.NAME]` and `[[deployments]]`: who serves which model."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from turnout.core.ids import DeploymentId, ModelId, ProviderName
from turnout.core.inference import TaskKind
from turnout.core.json import JsonObject
from turnout.core.money import Price, usd_to_micros
from turnout.errors import ConfigError
from turnout.gateway.catalog import (
    Catalog,
    Deployment,
    Profile,
    Provider,
    StatedQuality,
    ToolSupport,
)
from turnout.gateway.config.addresses import http_address, sendable_key
from turnout.gateway.config.prices import known_price
from turnout.gateway.config.tables import Rate, Share, Table, Usd, close_match, read_table

__all__ = ["parse_catalog"]


_Name = Annotated[str, Field(min_length=1)]
_Tokens = Annotated[int, Field(ge=1)]
_Body = dict[str, Any]


class _Provider(Table):
    base_url: Annotated[str, AfterValidator(http_address)]
    api_key_env: _Name | None = None
    connect_timeout: Rate = 10.0
    idle_timeout: Rate = 300.0


class _Price(Table):
    input_usd: Usd
    output_usd: Usd
    cache_read_usd: Usd | None = None
    cache_write_usd: Usd | None = None


class _Quality(Table):
    value: Share
    source: _Name
    sample_size: _Tokens | None = None


class _Thinking(Table):
    on: _Body = Field(default_factory=dict)
    off: _Body = Field(default_factory=dict)


class _Deployment(Table):
    model: _Name
    provider: _Name
    name: _Name | None = None
    price: _Price | None = None
    context_window: _Tokens | None = None
    max_output: _Tokens = 4_096
    tools: ToolSupport = "unknown"
    enforces_tool_choice: bool = True
    calls_in_text: bool = False
    json_schema: bool = True
    thinking: _Thinking = _Thinking()
    profile: Profile = "loop"
    quality: dict[TaskKind, _Quality] = Field(default_factory=dict)
    ttft_ms: Rate | None = None
    tokens_per_second: Rate | None = None


class _Catalog(Table):
    providers: dict[_Name, _Provider] = Field(default_factory=dict)
    deployments: list[_Deployment] = Field(default_factory=list)


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
    read = read_table(_Catalog, wanted, "")
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


def _provider(name: str, read: _Provider, secret: Callable[[str], str | None]) -> Provider:
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
    )


def _deployment(
    row: _Deployment,
    providers: Mapping[ProviderName, Provider],
    price_of: Callable[[str, str], Price | None],
    where: str,
) -> Deployment:
    provider = providers.get(ProviderName(row.provider))
    if provider is None:
        raise ConfigError(
            f"`{where}.provider` names {row.provider!r}, which `providers` does not have.",
            mend=close_match(row.provider, list(providers)),
        )
    name = row.name or row.model
    return Deployment(
        id=DeploymentId(f"{row.provider}/{row.model}"),
        model=ModelId(row.model),
        provider=provider.name,
        upstream_name=name,
        price=_price(row.price) if row.price else price_of(provider.base_url, name),
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
            kind: StatedQuality(quality.value, quality.source, quality.sample_size)
            for kind, quality in row.quality.items()
        },
        stated_ttft_ms=row.ttft_ms,
        stated_tokens_per_second=row.tokens_per_second,
    )


def _price(read: _Price) -> Price:
    read_usd, write_usd = read.cache_read_usd, read.cache_write_usd
    return Price(
        input=usd_to_micros(read.input_usd),
        output=usd_to_micros(read.output_usd),
        cache_read=None if read_usd is None else usd_to_micros(read_usd),
        cache_write=None if write_usd is None else usd_to_micros(write_usd),
    )
