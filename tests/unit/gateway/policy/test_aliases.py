"""Clients' own names for models lead where the policy says."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.core.inference import RoutingAsk
from turnout.core.policies import Alias, Policy
from turnout.gateway.policy.aliases import aliased
from turnout.testing.exchange import PLAIN_REQUEST

POLICY = Policy(
    aliases=(
        Alias("gpt-5-mini", "small"),
        Alias("gpt-*", "auto", optimize="quality"),
        Alias("claude-*-2026", "p/big", task="coding"),
        Alias("odd[1]?", "small"),
    )
)


def asking(model: str, **ask):
    """Return a request for a model."""
    return replace(PLAIN_REQUEST, model=model, ask=RoutingAsk(**ask))


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("gpt-5-mini", "small"),
        ("gpt-5", "auto"),
        ("claude-sonnet-2026", "p/big"),
        ("claude-2026", "claude-2026"),
        ("odd[1]?", "small"),
        ("odd1x", "odd1x"),
        ("GPT-5", "GPT-5"),
        ("my-gpt-5", "my-gpt-5"),
        ("auto", "auto"),
    ],
)
def test_the_first_alias_that_fits_counts(name: str, model: str) -> None:
    """As a whole name; only the asterisk stands for more than itself."""
    assert aliased(POLICY, asking(name)).model == model


def test_what_an_alias_is_routed_for_gives_way_to_the_request() -> None:
    """The client that says what it wants gets it."""
    assert aliased(POLICY, asking("gpt-5")).ask.optimize == "quality"
    assert aliased(POLICY, asking("gpt-5", optimize="cost")).ask.optimize == "cost"
    assert aliased(POLICY, asking("claude-x-2026")).ask.task == "coding"
    assert aliased(POLICY, asking("claude-x-2026", session="s")).ask.session == "s"


def test_a_request_without_an_alias_is_left_alone() -> None:
    """Nothing is copied on the way of most requests."""
    request = asking("auto")
    assert aliased(POLICY, request) is request


def test_a_catch_all_does_not_catch_auto() -> None:
    """Whoever asks for `auto` gets the policy's own objective."""
    everything = Policy(aliases=(Alias("*", "small", optimize="cost"),))
    assert aliased(everything, asking("auto")).ask.optimize is None
    assert aliased(everything, asking("anything")).model == "small"


@given(st.text("ab*", min_size=1, max_size=6), st.text("ab", max_size=8))
def test_an_asterisk_stands_for_any_characters(pattern: str, name: str) -> None:
    """As it does in the patterns of a shell."""
    fits = re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name) is not None
    assert (aliased(Policy(aliases=(Alias(pattern, "p/m"),)), asking(name)).model == "p/m") == fits
