"""Money as integer micro-USD; no float ever holds an amount."""

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final, NewType

from turnout.core.usage import Usage

__all__ = [
    "MOST_USD",
    "Micros",
    "Price",
    "PriceTier",
    "cost_micros",
    "format_usd",
    "read_usd",
    "usd_to_micros",
]

Micros = NewType("Micros", int)
"""Millionths of a US dollar."""

MOST_USD: Final = 10**9
"""US dollars that an amount has at most, on either side of nothing."""

_MTOK = 1_000_000
_LONGEST = 40
"""Characters of an amount that is written as text."""


@dataclass(frozen=True, slots=True)
class Price:
    """What a deployment charges, in micro-USD per million tokens."""

    input: int
    output: int
    cache_read: int | None = None
    """Tokens answered from a prompt cache; None: charged as `input`."""
    cache_write: int | None = None
    """Tokens written to a prompt cache; None: charged as `input`."""
    tiers: "tuple[PriceTier, ...]" = ()
    """What longer prompts are charged, the shortest of them first."""

    def at(self, input_tokens: int) -> "Price":
        """Return the price of a request with so many tokens of input, cached ones included."""
        for tier in reversed(self.tiers):
            if input_tokens > tier.above:
                return tier.price
        return self


@dataclass(frozen=True, slots=True)
class PriceTier:
    """The price of requests with a long prompt; it holds for all of their tokens."""

    above: int
    """Tokens of input that such a request has more of."""
    price: Price


def cost_micros(usage: Usage, price: Price) -> Micros:
    """Return what one request's `usage` costs, rounded up to a whole micro-USD once."""
    price = price.at(usage.input_tokens) if price.tiers else price
    read, written = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
    plain = max(0, usage.input_tokens - read - written)
    total = (
        plain * price.input
        + read * (price.input if price.cache_read is None else price.cache_read)
        + written * (price.input if price.cache_write is None else price.cache_write)
        + usage.output_tokens * price.output
    )
    return Micros(-(-total // _MTOK))


def read_usd(amount: Decimal | str | int) -> Decimal:
    """Return an amount in US dollars that may be reckoned with; `ValueError` for any other.

    What is measured comes first: a number such as `1e999999` is a few characters, and reckoning
    with it takes minutes.
    """
    if isinstance(amount, str) and len(amount) > _LONGEST:
        raise ValueError(f"an amount has at most {_LONGEST} characters")
    try:
        exact = Decimal(amount)
    except InvalidOperation:
        raise ValueError("it is no amount in US dollars") from None
    # `abs` would reckon; comparing looks at the exponents first.
    if not exact.is_finite() or exact.copy_abs() > MOST_USD:
        raise ValueError(f"an amount is at most {MOST_USD:,} US dollars")
    return exact


def usd_to_micros(amount: Decimal | str | int) -> Micros:
    """Return a dollar amount as micro-USD; a finer amount is rounded half up.

    `ValueError` for what is no amount, or more than `MOST_USD`.
    """
    return Micros(int((read_usd(amount) * _MTOK).to_integral_value(rounding="ROUND_HALF_UP")))


def format_usd(amount: Micros) -> str:
    """Return `amount` for people: `$1.25`, and down to a micro-USD below a cent."""
    dollars = Decimal(amount) / _MTOK
    if amount == 0 or abs(amount) >= _MTOK // 100:
        return f"${dollars:.2f}"
    return f"${dollars:.6f}".rstrip("0")
