"""The policy table becomes a policy, or an error that names the key and the mend."""

import tomllib

import pytest

from turnout.core.ids import ModelId
from turnout.core.policies import (
    Alias,
    EvidenceBar,
    PinnedFallback,
    Policy,
    PoolRule,
    SessionCaps,
    TaskRule,
    ToolRule,
)
from turnout.errors import ConfigError
from turnout.gateway.catalog import Catalog
from turnout.gateway.config.policy_file import check_models, parse_policies, parse_policy
from turnout.testing.exchange import deployment

WHOLE = """
name = "team"
objective = "cost"
pool = ["strong", "fast"]
allow_unpriced = true
min_tool_success = 0.9
min_quality = 1
[tools]
mode = "enforce"
allow = ["read_file", "mcp:git/*"]
[session]
max_requests = 200
max_spend_usd = "2.005"
[tasks.coding]
model = "strong"
[pinned]
fallback = "model"
model = "fast"
"""


def test_every_key_of_the_table_is_read() -> None:
    """The example holds each key once."""
    assert parse_policy(tomllib.loads(WHOLE)) == Policy(
        name="team",
        pool=PoolRule((ModelId("strong"), ModelId("fast"))),
        objective="cost",
        tools=ToolRule("enforce", ("read_file", "mcp:git/*")),
        session=SessionCaps(200, 2_005_000),
        task_rules=(TaskRule("coding", ModelId("strong")),),
        pinned=PinnedFallback("model", ModelId("fast")),
        evidence=EvidenceBar(min_tool_success=0.9),
        min_quality=1.0,
        allow_unpriced=True,
    )


def test_an_empty_table_is_the_default_policy() -> None:
    """Every key may be left out."""
    assert parse_policy({}) == Policy()


def test_a_tool_list_without_a_mode_is_a_dry_run() -> None:
    """A list is never silently without effect."""
    assert parse_policy({"tools": {"allow": ["a"]}}).tools == ToolRule("dry_run", ("a",))


@pytest.mark.parametrize(
    ("toml", "message", "mend"),
    [
        ('objectiv = "cost"', "`policy.objectiv` is no key.", "Did you mean `objective`?"),
        ("[tool]", "`policy.tool` is no key.", "Did you mean `tools`?"),
        ('[tools]\nallowed = ["a"]', "`policy.tools.allowed` is no key.", "Did you mean `allow`?"),
        ("[session]\nrpm = 1", "`policy.session.rpm`", "Known: max_requests, max_spend_usd."),
        ('[tasks.coding]\nmodell = "a"', "`policy.tasks.coding.modell`", "Did you mean `model`?"),
        ("[tasks.coding]", "`policy.tasks.coding.model` is missing.", "Add it."),
        ('[tasks.codin]\nmodel="a"', "`policy.tasks.codin` is 'codin'", "'coding', 'summar"),
        ('objective = "speed"', "`policy.objective` is 'speed'.", "Write one of 'quality',"),
        ("min_quality = 1.5", "`policy.min_quality` must be less than or equal to 1.", ""),
        ("min_quality = true", "`policy.min_quality` must be a valid number.", ""),
        ("[session]\nmax_requests = 0", "`policy.session.max_requests` must be greater", ""),
        (
            "[session]\nmax_requests = 2.5",
            "`policy.session.max_requests` must be a whole number",
            "",
        ),
        ("[session]\nmax_spend_usd = 2.5", 'no digit is lost: write "2.5"', ""),
        ('[session]\nmax_spend_usd = "-1"', "must be an amount from 0", ""),
        ('[session]\nmax_spend_usd = "NaN"', "must be an amount from 0", ""),
        ('[session]\nmax_spend_usd = "two"', 'US dollars, such as "0.27"', ""),
        ('pool = [""]', "`policy.pool.models[0]`", ""),
        ('pool = "a"', '`policy.pool.models` must be a list, such as ["a"].', ""),
        ('[pinned]\nfallback = "model"', "`policy.pinned.model` goes with", "Set both"),
        ('[pinned]\nmodel = "a"', "`policy.pinned.model` goes with", "Set both"),
    ],
)
def test_a_wrong_key_is_named_with_its_mend(toml: str, message: str, mend: str) -> None:
    """Nothing wrong passes, and nobody has to guess."""
    with pytest.raises(ConfigError) as caught:
        parse_policy(tomllib.loads(toml))
    assert message in caught.value.message
    assert mend in caught.value.mend


def test_a_model_that_no_deployment_has_is_an_error() -> None:
    """A typing mistake in the pool would shut every model out."""
    catalog = Catalog(deployments=(deployment("acme/strong"),))
    check_models(parse_policy({"pool": ["strong"]}), catalog)
    with pytest.raises(ConfigError, match=r"policy.pool.*Did you mean `strong`"):
        check_models(parse_policy({"pool": ["stron"]}), catalog)
    with pytest.raises(ConfigError, match=r"policy.tasks.coding.model"):
        check_models(parse_policy({"tasks": {"coding": {"model": "x"}}}), catalog)


EVERYTHING = """
caching = false
reroute_refusals = true
keep_replies_hours = 2.5
[pool]
models = ["big", "p/small"]
exclude = ["old"]
providers = ["p"]
regions = ["eu"]
labels = ["hipaa"]
min_context = 128000
max_input_usd = "1.25"
max_output_usd = "10"
min_tool_success = 0.9
[evidence]
min_tool_success = 0.8
min_samples = 20
max_age_days = 30
[tools]
mode = "enforce"
read_only = ["read_file"]
[tools.by_kind]
review = ["read_file"]
[aliases]
"gpt-5" = "big"
"gpt-*" = { optimize = "quality", task = "coding" }
[provider_keys]
p = "TEAM_KEY"
"""


def test_every_key_of_a_teams_policy_is_read() -> None:
    """The rest of them."""
    assert parse_policy(tomllib.loads(EVERYTHING)) == Policy(
        pool=PoolRule(
            models=("big", "p/small"),
            exclude=("old",),
            providers=("p",),
            regions=("eu",),
            labels=("hipaa",),
            min_context=128_000,
            max_input_price=1_250_000,
            max_output_price=10_000_000,
            min_tool_success=0.9,
        ),
        tools=ToolRule("enforce", (), (("review", ("read_file",)),), ("read_file",)),
        evidence=EvidenceBar(0.8, 20, 30),
        aliases=(
            Alias("gpt-5", "big"),
            Alias("gpt-*", "auto", optimize="quality", task="coding"),
        ),
        caching=False,
        provider_keys=(("p", "TEAM_KEY"),),
        reroute_refusals=True,
        keep_replies_hours=2.5,
    )


@pytest.mark.parametrize(
    "entry", ["read_*", "*", "mcp:", "mcp:git", "mcp:git/", "mcp:*/x", "mcp:git/a*", ""]
)
def test_a_tool_entry_that_could_never_fit_is_an_error(entry: str) -> None:
    """Only `mcp:server/*` stands for more than itself; anything else would be in vain."""
    with pytest.raises(ConfigError, match=r"policy\.tools\.allow\[0\]"):
        parse_policy({"tools": {"allow": [entry]}})


def test_a_file_may_hold_several_policies() -> None:
    """Each with the name of its table; the one table `[policy]` is the default."""
    text = '[policy]\nobjective = "cost"\n[policies.team]\npool = ["a"]\n[agent]\nmax_steps = 3'
    assert parse_policies(tomllib.loads(text)) == (
        Policy(objective="cost"),
        Policy(name="team", pool=PoolRule(("a",))),
    )
    assert parse_policies({}) == ()


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("[polcy]", "`polcy` is no table."),
        ("[policie.x]", "`policie` is no table."),
        ("policy = 1", "`policy` must be a table."),
        ("[policies]\nx = 1", "`policies.x` must be a table."),
        ('[policies.x]\nname = "y"', "`policies.x.name` is 'y'"),
        ("[policy]\n[policies.default]", "two policies named 'default'"),
        ('[policies.x]\nobjectiv = "cost"', "`policies.x.objectiv` is no key."),
        ('[policies."a b"]', "`policies.a b.name`"),
        ("[policies.x.evidence]\nmin_tool_success = 0.5\n[policies.x.aliases]\nauto = 'a'", "auto"),
        (
            "[policy]\nmin_tool_success = 0.5\n[policy.evidence]\nmin_tool_success = 0.5",
            "short for",
        ),
    ],
)
def test_a_wrong_file_of_policies_is_an_error(toml: str, message: str) -> None:
    """With the table that is wrong."""
    with pytest.raises(ConfigError) as caught:
        parse_policies(tomllib.loads(toml))
    assert message in caught.value.message


def test_a_provider_that_is_not_configured_is_an_error() -> None:
    """Its key would never be used, its pool admit nothing."""
    catalog = Catalog(deployments=(deployment("acme/strong"),))
    with pytest.raises(ConfigError, match=r"provider_keys.*'acm'"):
        check_models(parse_policy({"provider_keys": {"acm": "KEY"}}), catalog)
    with pytest.raises(ConfigError, match=r"pool\.providers.*'acm'"):
        check_models(parse_policy({"pool": {"providers": ["acm"]}}), catalog)
    check_models(parse_policy({"pool": ["acme/strong"]}), catalog)
