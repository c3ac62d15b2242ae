"""What a catalog leaves unknown is found out once."""

from dataclasses import replace
from datetime import timedelta

import pytest

from turnout.core.ids import ProviderName
from turnout.errors import ModelUnavailableError
from turnout.gateway.catalog import Catalog, Deployment, Provider
from turnout.gateway.dialog.conversation import Shape
from turnout.gateway.evidence import Check, Examination, ProbeResult
from turnout.gateway.measure.settle import Settled, discover, keep_result, kept_result, settle
from turnout.gateway.providers.http import HttpUpstream
from turnout.gateway.wire.base import UpstreamShape
from turnout.gateway.wire.chat import ChatShape
from turnout.testing.clock import FrozenClock
from turnout.testing.exchange import deployment
from turnout.testing.model_server import (
    Refusal,
    ScriptedModelServer,
    Turn,
    refusing_base_url,
)
from turnout.testing.stores import MemoryProbesStore

SHAPES: dict[Shape, UpstreamShape] = {"chat": ChatShape()}
UNSURE = replace(deployment("env/m"), tools="unknown")


def catalog(base_url: str, *deployments: Deployment, api_key: str = "") -> Catalog:
    """Return a catalog of one provider."""
    provider = Provider(ProviderName("env"), base_url, api_key)
    return Catalog({provider.name: provider}, deployments or (UNSURE,))


async def settled(
    what: Catalog, store: MemoryProbesStore | None = None, clock: FrozenClock | None = None
) -> Settled:
    """Settle a catalog."""
    clock = clock or FrozenClock()
    async with HttpUpstream(clock) as upstream:
        return await settle(what, upstream, SHAPES, store or MemoryProbesStore(), clock)


async def test_what_was_unknown_is_written_into_the_catalog() -> None:
    """Everything the probe found replaces what was assumed."""
    answers = [Turn("no"), Turn("no")]
    async with ScriptedModelServer(answers, answers_probes=False) as server:
        found = await settled(catalog(server.base_url))
    (deployment_,) = found.catalog.deployments
    assert (deployment_.tools, deployment_.json_schema) == ("absent", False)
    assert found.results[0].deployment == UNSURE.id


async def test_what_is_stated_is_not_asked() -> None:
    """Only unknown support is probed; the rest stays as it is."""
    stated = deployment("env/sure")
    async with ScriptedModelServer() as server:
        found = await settled(catalog(server.base_url, stated))
        assert server.probes == []
    assert found.catalog.deployments == (stated,)


async def test_a_result_is_kept_for_the_next_run() -> None:
    """The same endpoint and model are asked once, under whatever name."""
    store = MemoryProbesStore()
    async with ScriptedModelServer() as server:
        await settled(catalog(server.base_url), store)
        asked = len(server.probes)
        renamed = replace(UNSURE, id=deployment("env/other").id)
        again = await settled(catalog(server.base_url, renamed), store)
        assert len(server.probes) == asked
    assert again.results[0].deployment == "env/other"


async def test_a_probe_is_announced_once_and_a_kept_result_is_not() -> None:
    """Who waits learns why, and nobody is told of work that is not done."""
    store, told, clock = MemoryProbesStore(), list[str](), FrozenClock()
    other = replace(UNSURE, id=deployment("env/other").id, upstream_name="other")
    async with ScriptedModelServer() as server, HttpUpstream(clock) as upstream:
        both = catalog(server.base_url, UNSURE, other)
        for _ in range(2):
            await settle(both, upstream, SHAPES, store, clock, lambda: told.append("probing"))
    assert told == ["probing"]


async def test_another_model_at_the_same_place_is_asked() -> None:
    """What one model can do says nothing about the next."""
    store = MemoryProbesStore()
    async with ScriptedModelServer() as server:
        await settled(catalog(server.base_url), store)
        await settled(catalog(server.base_url, replace(UNSURE, upstream_name="n")), store)
        assert {probe.model for probe in server.probes} == {"m", "n"}


async def test_an_old_result_is_asked_again() -> None:
    """Servers are updated."""
    store, clock = MemoryProbesStore(), FrozenClock()
    async with ScriptedModelServer() as server:
        await settled(catalog(server.base_url), store, clock)
        asked = len(server.probes)
        clock.advance(timedelta(days=31).total_seconds())
        await settled(catalog(server.base_url), store, clock)
        assert len(server.probes) == 2 * asked


async def test_a_model_that_was_found_wanting_is_asked_again_soon() -> None:
    """Its server may have been started anew with what it lacked."""
    store, clock = MemoryProbesStore(), FrozenClock()
    async with ScriptedModelServer() as server:
        what = catalog(server.base_url)
        provider = what.providers[ProviderName("env")]
        failed = ProbeResult(UNSURE.id, clock.now(), "absent", False, False, True, "No call.")
        await keep_result(store, provider, UNSURE, failed)
        again = await settled(what, store, clock)
        assert (again.results[0].tools, server.probes) == ("absent", [])
        clock.advance(timedelta(minutes=11).total_seconds())
        found = await settled(what, store, clock)
    assert found.results[0].tools == "confirmed"


async def test_an_examination_outlives_the_probe_that_it_came_with() -> None:
    """The three short calls that are made again after a month do not take its figures away."""
    store, clock = MemoryProbesStore(), FrozenClock()
    exam = Examination(clock.now(), (Check("call", 19, 20),))
    async with ScriptedModelServer() as server:
        what = catalog(server.base_url)
        provider = what.providers[ProviderName("env")]
        old = ProbeResult(UNSURE.id, clock.now(), "confirmed", False, True, True, "", exam)
        await keep_result(store, provider, UNSURE, old)
        clock.advance(timedelta(days=31).total_seconds())
        found = await settled(what, store, clock)
        assert server.probes
        assert found.results[0].at > old.at
        kept = await kept_result(store, provider, UNSURE)
        stated = await settled(catalog(server.base_url, deployment("env/m")), store, clock)
    assert kept is not None
    assert found.results[0].examined == kept.examined == exam
    assert [result.examined for result in stated.results] == [exam]


async def test_one_that_cannot_be_asked_does_not_hold_up_the_rest() -> None:
    """Its support stays unknown, and the error says why."""
    lost = replace(UNSURE, id=deployment("env/lost").id, upstream_name="lost")
    script = {"lost": [Refusal(429), Refusal(429)]}
    async with ScriptedModelServer(script, answers_probes=False) as server:
        found = await settled(catalog(server.base_url, lost, deployment("env/sure")))
    assert found.catalog.deployments[0].tools == "unknown"
    assert "accepts no requests now" in found.failures[lost.id].message


async def test_a_provider_without_its_key_is_not_asked() -> None:
    """What could only be refused is not tried."""
    async with ScriptedModelServer() as server:
        what = catalog(server.base_url)
        provider = replace(what.providers[ProviderName("env")], unset_key="ACME_KEY")
        found = await settled(replace(what, providers={provider.name: provider}))
        assert server.probes == []
    assert found.catalog.deployments == (UNSURE,)


@pytest.mark.faults
async def test_a_failed_probe_is_not_kept() -> None:
    """The next run asks again."""
    store = MemoryProbesStore()
    async with ScriptedModelServer(lambda _: Refusal(503), answers_probes=False) as server:
        with pytest.raises(ModelUnavailableError):
            await settled(catalog(server.base_url), store)
    async with ScriptedModelServer() as server:
        assert (await settled(catalog(server.base_url), store)).results


@pytest.mark.faults
async def test_a_wrong_key_names_the_variable() -> None:
    """The mend is the setting, and the key is not shown."""
    async with ScriptedModelServer(api_key="right") as server:
        with pytest.raises(ModelUnavailableError) as wrong:
            await settled(catalog(server.base_url, api_key="sk-wrong"))
        with pytest.raises(ModelUnavailableError) as none:
            await settled(catalog(server.base_url))
    assert wrong.value.mend == "Check LLM_API_KEY."
    assert none.value.mend == "No key was sent: set LLM_API_KEY."
    assert "sk-wrong" not in str(wrong.value)


@pytest.mark.faults
async def test_a_host_that_is_not_there_names_the_address() -> None:
    """The mend is the base URL, or starting the server."""
    with refusing_base_url() as url, pytest.raises(ModelUnavailableError) as caught:
        await settled(catalog(url))
    assert caught.value.mend == "Check LLM_BASE_URL, and that the server runs."
    assert url in caught.value.message


@pytest.mark.faults
async def test_an_unknown_model_names_the_model() -> None:
    """The mend is the model's name; a catalog's provider has its own keys."""
    async with ScriptedModelServer({"other": []}, answers_probes=False) as server:
        with pytest.raises(ModelUnavailableError) as caught:
            await settled(catalog(server.base_url))
        acme = Provider(ProviderName("acme"), server.base_url)
        other = replace(UNSURE, provider=acme.name)
        with pytest.raises(ModelUnavailableError) as named:
            await settled(Catalog({acme.name: acme}, (other,)))
    assert "does not know the model 'm'" in caught.value.message
    assert caught.value.mend == "Check LLM_MODEL and LLM_BASE_URL."
    assert "providers.acme.base_url" in named.value.mend


async def test_the_models_of_an_endpoint_are_discovered() -> None:
    """An endpoint that lists none asks for the model's name."""
    async with (
        ScriptedModelServer(models=["a", "b"]) as server,
        HttpUpstream(FrozenClock()) as upstream,
    ):
        provider = Provider(ProviderName("env"), server.base_url)
        assert await discover(upstream, provider) == ("a", "b")
        nowhere = replace(provider, base_url=f"{server.base_url}/wrong")
        with pytest.raises(ModelUnavailableError, match="LLM_MODEL"):
            await discover(upstream, nowhere)
