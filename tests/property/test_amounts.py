"""Amounts of money are read in no time, exactly, or refused: whatever the text says."""

import time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.core.money import MOST_USD, usd_to_micros
from turnout.errors import ConfigError
from turnout.gateway.config.policy_file import parse_policy

EXPONENTS = st.integers(-(10**20), 10**20)
NUMBERS = st.builds("{}{}e{}".format, st.sampled_from(["", "-", "+"]), st.integers(0), EXPONENTS)
ODD = st.sampled_from(["", "nan", "sNaN", "Infinity", "-inf", "1e", "٣", "1_0", "9" * 10_000])
HOSTILE = st.one_of(NUMBERS, ODD, st.text(max_size=60), st.integers(min_value=10**30).map(str))


@given(HOSTILE)
def test_no_amount_takes_long_to_read(text: str) -> None:
    """It is one within bounds, or a `ValueError`."""
    began = time.process_time()
    try:
        micros = usd_to_micros(text)
    except ValueError:
        micros = 0
    assert abs(micros) <= MOST_USD * 10**6
    assert time.process_time() - began < 0.2


@pytest.mark.parametrize(
    "text",
    ["1e999993", "-1e999993", "1e99999999", "9" * 100_000, "1e1000000000000", "1e10"],
    ids=lambda value: value[:20],
)
def test_an_amount_beyond_all_money_is_refused(text: str) -> None:
    """At once: such a number is a few characters that take minutes to reckon with."""
    with pytest.raises(ValueError, match="an amount"):
        usd_to_micros(text)
    with pytest.raises(ConfigError, match="must be an amount from 0"):
        parse_policy({"name": "n", "session": {"max_spend_usd": text}})


@pytest.mark.parametrize(
    "amount", [10**40, -(10**40), 10**10, Decimal("1e999993")], ids=["a", "b", "c", "d"]
)
def test_a_number_beyond_all_money_is_refused(amount: int | Decimal) -> None:
    """As a text that says the same."""
    with pytest.raises(ValueError, match="an amount"):
        usd_to_micros(amount)


@given(st.integers(-MOST_USD * 10**6, MOST_USD * 10**6))
def test_every_amount_is_read_to_its_last_digit(micros: int) -> None:
    """None of them is rounded."""
    assert usd_to_micros(format(Decimal(micros) / 10**6, "f")) == micros
