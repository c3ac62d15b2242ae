"""List prices are looked up by address, offline, and never guessed."""

import pytest

from turnout.core.money import Price
from turnout.gateway.config.prices import known_price


def test_a_known_model_at_its_provider_has_its_list_price() -> None:
    """Prices are per million tokens, in micro-USD."""
    assert known_price("https://api.openai.com/v1", "gpt-4o-mini") == Price(
        150_000, 600_000, 75_000
    )


@pytest.mark.parametrize(
    ("url", "model"),
    [
        ("http://127.0.0.1:8080/v1", "gpt-4o-mini"),
        ("https://api.openai.com/v1", "no-such-model"),
        ("https://api.openai.com.evil.test/v1", "no-such-model"),
        ("", ""),
    ],
)
def test_another_address_or_model_has_no_known_price(url: str, model: str) -> None:
    """A model of the same name elsewhere may cost anything."""
    assert known_price(url, model) is None
