"""Which models a run may use, as far as that can be said without asking them."""

from dataclasses import replace
from pathlib import Path

import pytest

from turnout.core.ids import DeploymentId, ProviderName
from turnout.errors import ConfigError, ModelUnavailableError
from turnout.gateway.catalog import Catalog, Provider
from turnout.gateway.evidence import Snapshot
from turnout.settings import Settings, load_settings
from turnout.testing.exchange import deployment
from turnout.wiring.sources import (
    abilities,
    check_keys,
    check_names,
    choose,
    in_force,
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


def test_only_an_endpoint_without_a_file_goes_past_the_cap(
    configured: Settings, tmp_path: Path
) -> None:
    """It has no place to state a price; a file has."""
    environment = {"LLM_BASE_URL": "http://h/v1"}
    alone = load_settings(environment=environment, directory=tmp_path / "none")
    assert in_force(alone).policy.allow_unpriced
    assert was_discovered(alone)
    assert not was_discovered(alone.with_model("m"))
    assert in_force(configured) == configured


def test_models_are_told_apart_by_what_they_can_do() -> None:
    """One that cannot call tools is marked."""
    mute = replace(deployment("p/b"), id=DeploymentId("p/b"), tools="absent")
    assert abilities(Catalog(deployments=(deployment("p/a"), mute))) == (
        "models: a, b (tool support absent)"
    )
