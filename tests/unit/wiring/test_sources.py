"""Which models a run may use, as far as that can be said without asking them."""

from dataclasses import replace
from pathlib import Path

import pytest

from turnout.core.ids import DeploymentId, ProviderName
from turnout.core.money import Micros, Price
from turnout.core.policies import Policy, PoolRule, SessionCaps
from turnout.errors import ConfigError, ModelUnavailableError
from turnout.gateway.catalog import Catalog, Provider
from turnout.gateway.evidence import Snapshot
from turnout.gateway.providers.http import HttpUpstream
from turnout.settings import Settings, load_settings
from turnout.testing.clock import FrozenClock
from turnout.testing.exchange import deployment
from turnout.testing.model_server import ScriptedModelServer
from turnout.wiring.sources import (
    abilities,
    check_counted,
    check_keys,
    check_names,
    check_priced,
    check_reviewer,
    choose,
    local_catalog,
    unlisted,
    was_discovered,
)

TOML = """
[policy.session]
max_spend_usd = "1"
[providers.p]
base_url = "http://h/v1"
[[deployments]]
model = "m"
provider = "p"
tools = "confirmed"
"""


def keyless(*names: str) -> Catalog:
    """Return a catalog of two providers, of which those named lack their key."""
    providers = [
        Provider(
            ProviderName(n), f"http://{n}/v1", unset_key=f"{n.upper()}_KEY" if n in names else ""
        )
        for n in ("a", "b")
    ]
    return Catalog({p.name: p for p in providers}, (deployment("a/m"), deployment("b/m")))


@pytest.fixture
def configured(tmp_path: Path) -> Settings:
    """Return settings with one model of unknown price under a cap."""
    (tmp_path / "turnout.toml").write_text(TOML)
    return load_settings(environment={}, directory=tmp_path)


def test_one_key_is_enough() -> None:
    """Only where nobody could be asked is there nothing to begin with."""
    check_keys(keyless("a"))
    with pytest.raises(ConfigError, match="A_KEY and B_KEY are not set"):
        check_keys(keyless("a", "b"))


def test_a_model_that_is_shut_out_by_its_price_comes_with_the_ways_out(
    configured: Settings,
) -> None:
    """The setting that admits it is named."""
    with pytest.raises(ModelUnavailableError, match="allow_unpriced") as shut:
        choose(configured, configured.catalog, Snapshot())
    assert "p/m: price unknown under a spend cap" in shut.value.message
    opened = replace(configured, policy=replace(configured.policy, allow_unpriced=True))
    assert choose(opened, opened.catalog, Snapshot()) == "loop"


def test_a_step_that_asks_for_nobody_is_an_error(configured: Settings) -> None:
    """The step and the option are named."""
    check_names(configured, configured.catalog)
    with pytest.raises(ConfigError, match=r"step .* 'n', which no deployment has"):
        check_names(configured.with_model("n"), configured.catalog)


def test_an_endpoint_of_the_environment_is_held_to_a_cap_too(
    configured: Settings, tmp_path: Path
) -> None:
    """Nobody knows what its model costs, so that the cap shuts it out."""
    (tmp_path / "turnout.toml").write_text('[policy.session]\nmax_spend_usd = "1"')
    environment = {"LLM_BASE_URL": "http://h/v1"}
    alone = load_settings(environment=environment, directory=tmp_path)
    with pytest.raises(ModelUnavailableError, match="allow_unpriced"):
        choose(alone, configured.catalog, Snapshot())
    assert choose(replace(alone, policy=Policy()), configured.catalog, Snapshot()) == "loop"
    assert was_discovered(alone)
    assert not was_discovered(alone.with_model("m"))


def test_a_runs_own_cap_is_refused_where_it_would_miss_calls(configured: Settings) -> None:
    """Models that the pool or the steps leave out are not asked, whatever they cost."""
    capped = replace(configured.agent, max_spend=Micros(1))
    dark, known = configured.catalog.deployments[0], deployment("p/k")
    known = replace(known, price=Price(Micros(1), Micros(1)))
    both = replace(configured.catalog, deployments=(dark, known))
    with pytest.raises(ModelUnavailableError, match="p/m is unknown") as shut:
        check_counted(capped, Policy(), both)
    assert "`price`" in shut.value.mend
    only = configured.with_model(known.model).agent
    for config, policy in (
        (configured.agent, Policy()),
        (capped, Policy(allow_unpriced=True)),
        (capped, Policy(pool=PoolRule(exclude=(dark.model,)))),
        (replace(only, max_spend=Micros(1)), Policy()),
    ):
        check_counted(config, policy, both)


def test_a_cap_of_a_key_or_policy_is_refused_where_it_keeps_out_every_model(
    configured: Settings,
) -> None:
    """One model with a price is enough, as long as a run may ask it."""
    dark, known = configured.catalog.deployments[0], deployment("p/k")
    known = replace(known, price=Price(Micros(1), Micros(1)))
    both = replace(configured.catalog, deployments=(dark, known))
    capped, agent = Policy(session=SessionCaps(max_spend=Micros(1))), configured.agent
    only_dark = Policy(pool=PoolRule(models=(dark.model,)))
    with pytest.raises(ModelUnavailableError, match="The key has a cap on spend") as shut:
        check_priced(agent, only_dark, both, Micros(1))
    assert "`price`" in shut.value.mend
    with pytest.raises(ModelUnavailableError, match="The policy has a cap on spend"):
        check_priced(agent, replace(only_dark, session=capped.session), both, None)
    for policy, per_day in (
        (only_dark, None),
        (capped, Micros(1)),
        (replace(only_dark, allow_unpriced=True), Micros(1)),
    ):
        check_priced(agent, policy, both, per_day)


def test_a_model_that_only_repairs_is_no_reviewer() -> None:
    """Where a review may block, nothing would ever pass: that is said before the work."""
    settings = load_settings(environment={}, directory=Path("/nonexistent"))
    local = local_catalog("small", "http://h/v1", "absent")
    able = Catalog(local.providers, (deployment("local/a"),))
    for review in ("annotate", "block"):
        wanted = settings.with_effort(None, review)
        assert check_reviewer(wanted, able, Snapshot()) == ""
    assert check_reviewer(settings, local, Snapshot()) == ""
    told = check_reviewer(settings.with_effort(None, "annotate"), local, Snapshot())
    assert "comes to no decision" in told
    with pytest.raises(ConfigError, match="nothing would pass"):
        check_reviewer(settings.with_effort(None, "block"), local, Snapshot())


@pytest.mark.parametrize(("model", "said"), [("nosuch", "it lists a, b."), ("a", ""), ("", "")])
async def test_a_model_that_its_endpoint_does_not_list_is_named_with_those_it_lists(
    model: str, said: str
) -> None:
    """A misspelled name would else be found out at the first call, or never."""
    async with (
        ScriptedModelServer(models=["a", "b"]) as server,
        HttpUpstream(FrozenClock()) as upstream,
    ):
        given = {"LLM_BASE_URL": server.base_url, "LLM_MODEL": model}
        settings = load_settings(environment=given, directory=Path("/nonexistent"))
        told = await unlisted(settings, upstream)
        wrong = {**given, "LLM_BASE_URL": f"{server.base_url}/wrong"}
        silent = load_settings(environment=wrong, directory=Path("/nonexistent"))
        assert await unlisted(silent, upstream) == ""
    assert told.endswith(said)
    assert bool(told) == bool(said)


def test_models_are_told_apart_by_what_they_can_do() -> None:
    """One that cannot call tools is marked."""
    mute = replace(deployment("p/b"), id=DeploymentId("p/b"), tools="absent")
    assert abilities(Catalog(deployments=(deployment("p/a"), mute))) == (
        "models: a, b (tool support absent)"
    )
