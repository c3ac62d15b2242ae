"""List prices that are known without asking anybody."""

from datetime import UTC, datetime
from decimal import Decimal

from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import TieredPrices

from turnout.core.money import Micros, Price, usd_to_micros

__all__ = ["known_price"]


def known_price(base_url: str, model: str) -> Price | None:
    """Return today's list price of a model at the provider of that address; None: unknown.

    The prices came with the installed `genai-prices`; no network is used. Where a price rises
    with the length of the prompt, this is the price of a short one.
    """
    try:
        _, found = get_snapshot().find_provider_model(model, None, None, base_url)
    except LookupError:
        return None
    listed = vars(found.get_prices(datetime.now(UTC)))
    charged, generated = _micros(listed.get("input_mtok")), _micros(listed.get("output_mtok"))
    if charged is None or generated is None:
        return None
    return Price(
        input=charged,
        output=generated,
        cache_read=_micros(listed.get("cache_read_mtok")),
        cache_write=_micros(listed.get("cache_write_mtok")),
    )


def _micros(listed: object) -> Micros | None:
    amount = listed.base if isinstance(listed, TieredPrices) else listed
    return usd_to_micros(amount) if isinstance(amount, Decimal) else None
