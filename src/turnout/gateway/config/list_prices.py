"""The list prices that come with `genai-prices`, which takes long to load."""

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal

from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import TieredPrices

from turnout.core.money import Micros, Price, PriceTier, usd_to_micros

__all__ = ["list_price"]


def list_price(base_url: str, model: str) -> Price | None:
    """Return today's list price of a model at the provider of that address; None: unknown."""
    try:
        _, found = get_snapshot().find_provider_model(model, None, None, base_url)
    except LookupError:
        return None
    listed = vars(found.get_prices(datetime.now(UTC)))
    base = _price(listed, 0)
    if base is None:
        return None
    limits = sorted({limit for price in listed.values() for limit in _limits(price)})
    tiers = ((limit, _price(listed, limit)) for limit in limits)
    return Price(
        base.input,
        base.output,
        base.cache_read,
        base.cache_write,
        tuple(PriceTier(limit, price) for limit, price in tiers if price is not None),
    )


def _price(listed: Mapping[str, object], limit: int) -> Price | None:
    """Return what requests with more tokens of input than `limit` are charged."""
    charged = _micros(listed.get("input_mtok"), limit)
    generated = _micros(listed.get("output_mtok"), limit)
    if charged is None or generated is None:
        return None
    return Price(
        input=charged,
        output=generated,
        cache_read=_micros(listed.get("cache_read_mtok"), limit),
        cache_write=_micros(listed.get("cache_write_mtok"), limit),
    )


def _limits(price: object) -> list[int]:
    return [tier.start for tier in price.tiers] if isinstance(price, TieredPrices) else []


def _micros(listed: object, limit: int) -> Micros | None:
    amount = listed
    if isinstance(listed, TieredPrices):
        reached = [tier.price for tier in listed.tiers if tier.start <= limit]
        amount = reached[-1] if reached else listed.base
    return usd_to_micros(amount) if isinstance(amount, Decimal) else None
