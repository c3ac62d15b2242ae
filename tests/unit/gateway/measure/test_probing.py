"""Probes beside a gateway: few at once, each deployment once at a time, and none outlives it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from turnout.core.clock import SystemClock
from turnout.core.ids import DeploymentId
from turnout.core.json import JsonObject
from turnout.errors import FullError, ModelUnavailableError, NotFoundError
from turnout.gateway.catalog import Catalog, Provider
from turnout.gateway.evidence import ProbeResult
from turnout.gateway.exchange import ServerEvent, UpstreamReply
from turnout.gateway.measure.examine import ExamLimits
from turnout.gateway.measure.probing import ProbeDesk, Prober, ProbeStanding
from turnout.gateway.measure.settle import kept_result
from turnout.gateway.providers.http import HttpUpstream
from turnout.gateway.wire.shapes import SPOKEN
from turnout.testing.exchange import deployment
from turnout.testing.gateway import catalog_at
from turnout.testing.model_server import ScriptedModelServer
from turnout.testing.obedient import obedient
from turnout.testing.stores import MemoryProbesStore

NAMES = [DeploymentId(f"acme/{n}") for n in "abc"]


class Silent:
    """An upstream that never answers."""

    async def complete(
        self, provider: Provider, path: str, body: JsonObject, headers: Mapping[str, str]
    ) -> UpstreamReply:
        """Wait for ever."""
        await asyncio.Event().wait()
        raise AssertionError

    def stream(
        self, provider: Provider, path: str, body: JsonObject, headers: Mapping[str, str]
    ) -> AsyncGenerator[ServerEvent, None]:
        """Is not asked."""
        raise AssertionError

    async def models(self, provider: Provider) -> tuple[str, ...]:
        """List none."""
        return ()

    async def close(self) -> None:
        """Hold nothing."""


@asynccontextmanager
async def desk_at(
    base_url: str, learned: list[ProbeResult], store: MemoryProbesStore
) -> AsyncIterator[tuple[ProbeDesk, Catalog]]:
    """Open a desk for three deployments of a server."""
    catalog = catalog_at(base_url, *map(deployment, NAMES))
    async with HttpUpstream(SystemClock()) as upstream:
        prober = Prober(catalog, upstream, SPOKEN, store, SystemClock())
        async with ProbeDesk(prober, learned.append, ExamLimits(retries=0)) as desk:
            yield desk, catalog


async def ended(desk: ProbeDesk, name: DeploymentId) -> ProbeStanding:
    """Return how a probe has ended."""
    for _ in range(2_000):
        if desk.standings()[name].state != "running":
            return desk.standings()[name]
        await asyncio.sleep(0.01)
    pytest.fail("the probe has not ended within 20 s")


async def test_a_probe_ends_with_evidence_that_is_kept() -> None:
    """Decisions go by it at once, and the next process finds it."""
    learned: list[ProbeResult] = []
    store = MemoryProbesStore()
    async with (
        ScriptedModelServer(obedient, answers_probes=False) as server,
        desk_at(server.base_url, learned, store) as (desk, catalog),
    ):
        began = desk.start(NAMES[0], by="boss")
        assert (began.state, began.by, began.answered) == ("running", "boss", 0)
        assert desk.start(NAMES[0], by="other").by == "boss"
        end = await ended(desk, NAMES[0])
        assert (end.state, end.detail) == ("done", "It calls tools.")
        assert end.answered == end.asked > 0
        (result,) = learned
        chosen = catalog.deployments[0]
        kept = await kept_result(store, catalog.providers[chosen.provider], chosen)
        assert kept == result
        assert result.examined is not None


async def test_a_server_that_is_away_fails_the_probe_alone() -> None:
    """Why is said, and nothing is learned."""
    learned: list[ProbeResult] = []
    async with desk_at("http://127.0.0.1:9/v1", learned, MemoryProbesStore()) as (desk, _):
        desk.start(NAMES[0], by="boss")
        end = await ended(desk, NAMES[0])
        assert end.state == "failed"
        assert "acme" in end.detail
        assert learned == []


async def test_probes_are_few_at_once_and_end_with_the_desk() -> None:
    """A third is refused while two run; those that run say that they were cut off."""
    catalog = catalog_at("http://acme.example.org/v1", *map(deployment, NAMES))
    prober = Prober(catalog, Silent(), SPOKEN, MemoryProbesStore(), SystemClock())
    async with ProbeDesk(prober, lambda _: None) as desk:
        desk.start(NAMES[0], by="boss")
        desk.start(NAMES[1], by="boss")
        with pytest.raises(FullError):
            desk.start(NAMES[2], by="boss")
        await asyncio.sleep(0)
    ends = {(one.state, one.detail) for one in desk.standings().values()}
    assert ends == {("failed", "The service stopped before its end.")}


async def test_what_cannot_be_asked_is_not_begun() -> None:
    """A name that nobody has, and a provider without its key."""
    async with desk_at("http://127.0.0.1:9/v1", [], MemoryProbesStore()) as (desk, catalog):
        with pytest.raises(NotFoundError):
            desk.start(DeploymentId("nobody"), by="boss")
        ((name, provider),) = catalog.providers.items()
        shut = replace(catalog, providers={name: replace(provider, unset_key="ACME_KEY")})
        prober = replace(desk._prober, catalog=shut)
        with pytest.raises(ModelUnavailableError, match="ACME_KEY"):
            ProbeDesk(prober, lambda _: None).start(NAMES[0], by="boss")
        assert desk.standings() == {}
