"""The strategy follows from the deployment that would serve an act step."""

import pytest

from turnout.core.ids import DeploymentId, ModelId, ProviderName
from turnout.core.policies import Policy, PoolRule
from turnout.errors import ModelUnavailableError
from turnout.gateway.catalog import Catalog, Deployment, Profile, Provider, ToolSupport
from turnout.gateway.evidence import Snapshot
from turnout.runs.choose import choose_strategy

P = ProviderName("p")


def deployment(
    model: str, tools: ToolSupport, profile: Profile = "loop", ttft: float | None = None
) -> Deployment:
    """Return a deployment of a model."""
    return Deployment(
        DeploymentId(f"p/{model}"),
        ModelId(model),
        P,
        model,
        tools=tools,
        profile=profile,
        stated_ttft_ms=ttft,
        stated_tokens_per_second=100.0,
    )


def catalog(*deployments: Deployment) -> Catalog:
    """Return a catalog of these."""
    return Catalog({P: Provider(P, "http://h/v1")}, deployments)


def test_a_model_that_calls_tools_drives_a_loop() -> None:
    """That is what tools are for."""
    assert choose_strategy(Policy(), catalog(deployment("m", "confirmed")), Snapshot()) == "loop"


def test_a_small_model_repairs_even_where_it_calls_tools() -> None:
    """Its profile says what it is good for."""
    found = catalog(deployment("m", "confirmed", "repair"))
    assert choose_strategy(Policy(), found, Snapshot()) == "repair"


def test_a_small_model_needs_no_tools() -> None:
    """Repair works by text alone."""
    assert (
        choose_strategy(Policy(), catalog(deployment("m", "absent", "repair")), Snapshot())
        == "repair"
    )


def test_the_fastest_of_the_pool_decides() -> None:
    """Act steps are routed for latency."""
    both = catalog(
        deployment("slow", "confirmed", "repair", ttft=900.0),
        deployment("fast", "confirmed", "loop", ttft=100.0),
    )
    assert choose_strategy(Policy(), both, Snapshot()) == "loop"
    only = Policy(pool=PoolRule((ModelId("slow"),)))
    assert choose_strategy(only, both, Snapshot()) == "repair"


def test_a_pinned_model_decides_alone() -> None:
    """Whatever else there is."""
    both = catalog(deployment("a", "confirmed"), deployment("b", "absent", "repair"))
    assert choose_strategy(Policy(), both, Snapshot(), "b") == "repair"


@pytest.mark.parametrize("tools", ["absent", "unknown"])
def test_without_tools_a_loop_has_no_model(tools: ToolSupport) -> None:
    """The error says why each deployment was left out."""
    with pytest.raises(ModelUnavailableError, match=f"p/m: tool support {tools}"):
        choose_strategy(Policy(), catalog(deployment("m", tools)), Snapshot())


def test_an_empty_catalog_is_said_to_be_empty() -> None:
    """It is not a model's fault."""
    with pytest.raises(ModelUnavailableError, match="catalog is empty"):
        choose_strategy(Policy(), Catalog(), Snapshot())
