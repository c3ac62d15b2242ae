"""List prices are looked up by address, offline, and never guessed."""

import pytest

from turnout.core.money import Price
from turnout.gateway.config.prices import known_price


def test_a_known_model_at_its_provider_has_its_list_price() -> None:
    """Prices are per million tokens, in micro-USD."""
    assert known_price("https://api.openai.com/v1", "gpt-4o-mini") == Price(
        150_000, 600_000, 75_000
    )


@pytest.mark.cases
def test_a_price_that_rises_with_the_prompt_has_its_tiers() -> None:
    """All tokens of a long prompt cost more: a cap must reserve for that."""
    price = known_price("https://api.anthropic.com/v1", "claude-sonnet-4-5")
    assert price is not None
    (tier,) = price.tiers
    assert tier.above == 200_000
    assert tier.price.input > price.input
    assert tier.price.output > price.output
    assert price.at(200_000) is price
    assert price.at(200_001) == tier.price


@pytest.mark.parametrize(
    ("url", "model"),
    [
        ("http://127.0.0.1:8080/v1", "gpt-4o-mini"),
        ("http://localhost", "gpt-4o-mini"),
        ("http://localhost.example.org", "gpt-4o-mini"),
        ("https://api.openai.com/v1", "no-such-model"),
        ("https://api.openai.com.evil.test/v1", "no-such-model"),
        ("", ""),
    ],
)
def test_another_address_or_model_has_no_known_price(url: str, model: str) -> None:
    """A model of the same name elsewhere may cost anything."""
    assert known_price(url, model) is None
