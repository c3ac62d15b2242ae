"""Policies survive every form in which they are written."""

import tomllib
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.samples import values

from turnout.core.govern.revisions import decode_policy, encode_policy
from turnout.core.policies import (
    Alias,
    EgressPolicy,
    EvidenceBar,
    PinnedFallback,
    Policy,
    PoolRule,
    SecretBinding,
    SessionCaps,
    TaskRule,
    ToolRule,
)
from turnout.gateway.config.policy_file import parse_policies, parse_policy
from turnout.gateway.config.policy_text import policy_table, table_text, toml_text, whole_table
from turnout.web.console.hostile import visible

WORD = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
WORDS = st.lists(WORD, max_size=3).map(tuple)
LETTERS = st.text("abz_-", min_size=1, max_size=8)
TOOLS = st.lists(
    st.one_of(
        LETTERS,
        st.builds("mcp:{}/{}".format, LETTERS, st.one_of(LETTERS, st.just("*"))),
    ),
    max_size=4,
).map(tuple)
VARIABLE = st.text("AZ_", min_size=1, max_size=8)
NAME = st.builds("n{}".format, st.text("aZ09._-", max_size=8))
SHARE = st.floats(0, 1)
MONEY = st.integers(0, 10**12)
OBJECTIVE = st.sampled_from(["quality", "latency", "cost", "balanced"])
TASK = st.sampled_from(["coding", "summarisation", "reasoning", "extraction", "chat", "general"])


def optional(some):
    """Return a strategy that may also leave a value out."""
    return st.none() | some


def unique(strategy, key):
    """Return lists in which no two have the same name."""
    return st.lists(strategy, max_size=3, unique_by=key).map(tuple)


WRITTEN = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A policy has many fields, which takes a slow machine a while."""

POLICIES = st.builds(
    Policy,
    name=NAME,
    pool=st.builds(
        PoolRule,
        models=WORDS,
        exclude=WORDS,
        providers=WORDS,
        regions=WORDS,
        labels=WORDS,
        min_context=optional(st.integers(1, 10**7)),
        max_input_price=optional(MONEY),
        max_output_price=optional(MONEY),
        min_tool_success=optional(SHARE),
    ),
    objective=OBJECTIVE,
    tools=st.builds(
        ToolRule,
        mode=st.sampled_from(["any", "dry_run", "enforce"]),
        allow=TOOLS,
        by_kind=unique(
            st.tuples(st.sampled_from(["plan", "act", "review"]), TOOLS), lambda pair: pair[0]
        ),
        read_only=TOOLS,
    ),
    session=st.builds(
        SessionCaps, max_requests=optional(st.integers(1, 10**6)), max_spend=optional(MONEY)
    ),
    task_rules=unique(st.builds(TaskRule, task=TASK, model=WORD), lambda rule: rule.task),
    pinned=st.one_of(
        st.builds(PinnedFallback, mode=st.sampled_from(["same_model", "auto", "none"])),
        st.builds(PinnedFallback, mode=st.just("model"), model=WORD),
    ),
    min_quality=SHARE,
    egress=st.builds(
        EgressPolicy,
        allow=WORDS,
        private=WORDS,
        packages=st.booleans(),
        secrets=unique(
            st.builds(SecretBinding, variable=VARIABLE, host=WORD, source=VARIABLE),
            lambda secret: secret.variable,
        ),
    ),
    evidence=st.builds(
        EvidenceBar,
        min_tool_success=SHARE,
        min_samples=st.integers(0, 1000),
        max_age_days=optional(st.floats(0.1, 1000)),
    ),
    aliases=unique(
        st.builds(
            Alias,
            name=WORD.filter(lambda name: name != "auto"),
            model=WORD,
            optimize=optional(OBJECTIVE),
            task=optional(TASK),
        ),
        lambda alias: alias.name,
    ),
    caching=st.booleans(),
    provider_keys=unique(st.tuples(WORD, VARIABLE), lambda pair: pair[0]),
    reroute_refusals=st.booleans(),
    keep_replies_hours=st.floats(0, 8784),
    allow_unpriced=st.booleans(),
)


@WRITTEN
@given(POLICIES)
def test_a_policy_is_read_back_from_its_table(policy: Policy) -> None:
    """Whether the table says everything, or only what is not usual."""
    assert parse_policy(policy_table(policy)) == policy
    assert parse_policy(whole_table(policy)) == policy


@WRITTEN
@given(st.lists(POLICIES, min_size=1, max_size=2, unique_by=lambda policy: policy.name))
def test_policies_are_read_back_from_a_file(policies: list[Policy]) -> None:
    """Whatever characters their names of models hold."""
    assert list(parse_policies(tomllib.loads(toml_text(policies)))) == policies


@WRITTEN
@given(POLICIES)
def test_a_policy_is_read_back_from_its_own_table(policy: Policy) -> None:
    """Its name aside, and from a page that shows what cannot be seen as an escape."""
    table = tomllib.loads(visible(table_text(policy)))
    assert parse_policy({**table, "name": policy.name}) == policy


@WRITTEN
@given(values(Policy), st.integers(0, 2**31 - 1))
def test_a_policy_is_read_back_from_the_store(policy: Policy, revision: int) -> None:
    """With its revision, and also where no file could say it."""
    kept = replace(policy, revision=revision)
    assert decode_policy(encode_policy(kept)) == kept
