"""The tables `[providers.NAME]` and `[[deployments]]`, as they are written."""

import datetime as dt
import re
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from turnout.core.inference import TaskKind
from turnout.core.money import Price, PriceTier, usd_to_micros
from turnout.gateway.catalog import Caching, Profile, ToolSupport
from turnout.gateway.config.addresses import http_address, variable_of_key
from turnout.gateway.config.tables import Rate, Share, Table, Usd
from turnout.gateway.dialog.conversation import Shape

__all__ = [
    "CatalogTable",
    "DeploymentTable",
    "PriceTable",
    "ProviderTable",
    "QualityTable",
    "ThinkingTable",
    "TierTable",
]

_Name = Annotated[str, Field(min_length=1)]
_Tokens = Annotated[int, Field(ge=1)]
_Body = dict[str, Any]

_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]*")
_OURS = frozenset(
    {
        "api-key",
        "authorization",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "host",
        "proxy-authorization",
        "transfer-encoding",
        "x-api-key",
        "x-goog-api-key",
    }
)


def _headers(value: dict[str, str]) -> dict[str, str]:
    for name, text in value.items():
        if not _HEADER.fullmatch(name):
            raise ValueError(f"must hold names of headers, which {name!r} is not")
        if name.lower() in _OURS:
            raise ValueError(f"must leave {name} to the gateway; a key comes from `api_key_env`")
        if not _HEADER_VALUE.fullmatch(text):
            raise ValueError(f"must hold a value of printable ASCII for {name}")
    return value


class ProviderTable(Table):
    """`[providers.NAME]`."""

    base_url: Annotated[str, AfterValidator(http_address)]
    api_key_env: Annotated[str, AfterValidator(variable_of_key)] | None = None
    connect_timeout: Rate = 10.0
    idle_timeout: Rate = 300.0
    shape: Shape = "chat"
    key_header: Literal["bearer", "x-api-key", "api-key"] | None = None
    headers: Annotated[dict[str, str], AfterValidator(_headers)] = Field(default_factory=dict)
    account: dict[str, Any] | None = None
    """Checked by its kind, see `config.accounts`."""
    region: str = ""
    labels: list[_Name] = Field(default_factory=list)
    exact_path: bool = False


class _Charges(Table):
    """Dollars per million tokens."""

    input_usd: Usd
    output_usd: Usd
    cache_read_usd: Usd | None = None
    cache_write_usd: Usd | None = None

    def price(self) -> Price:
        """Return the price in micro-USD."""
        read, write = self.cache_read_usd, self.cache_write_usd
        return Price(
            input=usd_to_micros(self.input_usd),
            output=usd_to_micros(self.output_usd),
            cache_read=None if read is None else usd_to_micros(read),
            cache_write=None if write is None else usd_to_micros(write),
        )


class TierTable(_Charges):
    """`price.tiers[]`: what prompts of more than `above` tokens are charged."""

    above: _Tokens


def _ascending(tiers: list[TierTable]) -> list[TierTable]:
    limits = [tier.above for tier in tiers]
    if limits != sorted(set(limits)):
        raise ValueError("must go up from tier to tier in `above`")
    return tiers


class PriceTable(_Charges):
    """`price`."""

    tiers: Annotated[list[TierTable], AfterValidator(_ascending)] = Field(default_factory=list)

    def price(self) -> Price:
        """Return the price in micro-USD, with its tiers."""
        tiers = tuple(PriceTier(tier.above, tier.price()) for tier in self.tiers)
        return replace(super().price(), tiers=tiers)


def _date(value: object) -> object:
    try:
        return dt.date.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        raise ValueError("must be a date, such as 2026-10-01") from None


class QualityTable(Table):
    """`quality.KIND`."""

    value: Share
    source: _Name
    sample_size: _Tokens | None = None
    date: Annotated[dt.date | None, BeforeValidator(_date)] = None


class ThinkingTable(Table):
    """`thinking`."""

    on: _Body = Field(default_factory=dict)
    off: _Body = Field(default_factory=dict)


class DeploymentTable(Table):
    """`[[deployments]]`."""

    model: _Name
    provider: _Name
    name: _Name | None = None
    price: PriceTable | None = None
    context_window: _Tokens | None = None
    max_output: _Tokens = 4_096
    tools: ToolSupport = "unknown"
    enforces_tool_choice: bool = True
    calls_in_text: bool = False
    json_schema: bool = True
    thinking: ThinkingTable = ThinkingTable()
    profile: Profile = "loop"
    quality: dict[TaskKind, QualityTable] = Field(default_factory=dict)
    modalities: list[Literal["image", "audio", "file"]] = Field(default_factory=list)
    caching: Caching = "none"
    reasoning_field: _Name = "reasoning_content"
    reasoning_back: bool = False
    max_tokens_field: Literal["max_tokens", "max_completion_tokens", "as_sent"] = "as_sent"
    leaves_out: list[_Name] = Field(default_factory=list)
    region: str = ""
    labels: list[_Name] = Field(default_factory=list)
    ttft_ms: Rate | None = None
    tokens_per_second: Rate | None = None


class CatalogTable(Table):
    """Both tables."""

    providers: dict[_Name, ProviderTable] = Field(default_factory=dict)
    deployments: list[DeploymentTable] = Field(default_factory=list)
