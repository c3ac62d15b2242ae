"""Making sure of what a catalog leaves unknown, once for each endpoint and model."""

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from pydantic import TypeAdapter, ValidationError

from turnout.core.clock import Clock
from turnout.core.ids import DeploymentId
from turnout.errors import ModelUnavailableError
from turnout.gateway.catalog import Catalog, Deployment, Provider
from turnout.gateway.evidence import ProbeResult
from turnout.gateway.exchange import UpstreamError
from turnout.gateway.measure.probe import probe
from turnout.gateway.measure.unavailable import unavailable
from turnout.gateway.ports import ProbeStore, Upstream

__all__ = ["Settled", "discover", "settle"]

_GOOD_FOR = timedelta(days=30)
_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Settled:
    """A catalog without unknowns, as far as its providers could be asked."""

    catalog: Catalog
    results: tuple[ProbeResult, ...]
    """Of every deployment whose tool support was unknown, kept results included."""
    failures: Mapping[DeploymentId, ModelUnavailableError]
    """Deployments that could not be asked; their tool support stays unknown."""


async def settle(
    catalog: Catalog,
    upstream: Upstream,
    store: ProbeStore,
    clock: Clock,
    on_probe: Callable[[], object] = lambda: None,
) -> Settled:
    """Probe the deployments whose tool support is unknown; a kept result saves the probe.

    `on_probe` is called before the first probe, if there is one. Providers that lack their key
    are left alone. `ModelUnavailableError` where no deployment at all could be asked.
    """
    usable = [d for d in catalog.deployments if not catalog.providers[d.provider].unset_key]
    unknown = [d for d in usable if d.tools == "unknown"]
    asking = _Settling(upstream, store, clock, on_probe)
    found = await asyncio.gather(
        *(asking.result(catalog.providers[d.provider], d) for d in unknown)
    )
    failures = {
        d.id: outcome
        for d, outcome in zip(unknown, found, strict=True)
        if isinstance(outcome, ModelUnavailableError)
    }
    if failures and len(failures) == len(usable):
        raise next(iter(failures.values()))
    results = {o.deployment: o for o in found if isinstance(o, ProbeResult)}
    deployments = tuple(_settled(d, results.get(d.id)) for d in catalog.deployments)
    return Settled(replace(catalog, deployments=deployments), tuple(results.values()), failures)


async def discover(upstream: Upstream, provider: Provider) -> tuple[str, ...]:
    """Return the models that a provider lists; `ModelUnavailableError` where it lists none."""
    try:
        return await upstream.models(provider)
    except UpstreamError as error:
        raise unavailable(error, provider) from error


class _Settling:
    """Finds results, few at a time."""

    def __init__(
        self,
        upstream: Upstream,
        store: ProbeStore,
        clock: Clock,
        on_probe: Callable[[], object],
    ) -> None:
        self._upstream = upstream
        self._store = store
        self._clock = clock
        self._on_probe = on_probe
        self._probing = False
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def result(
        self, provider: Provider, deployment: Deployment
    ) -> ProbeResult | ModelUnavailableError:
        """Return the kept result or a new one, or why there is none."""
        key = _key(provider, deployment)
        kept = _decode(await self._store.get(key))
        if kept is not None and self._clock.now() - kept.at < _GOOD_FOR:
            return replace(kept, deployment=deployment.id)
        self._tell()
        async with self._slots:
            try:
                fresh = await probe(self._upstream, provider, deployment, self._clock)
            except UpstreamError as error:
                return unavailable(error, provider, deployment)
        await self._store.put(key, TypeAdapter(ProbeResult).dump_json(fresh).decode())
        return fresh

    def _tell(self) -> None:
        if not self._probing:
            self._probing = True
            self._on_probe()


def _key(provider: Provider, deployment: Deployment) -> str:
    asked = f"{provider.base_url}\n{deployment.upstream_name}"
    return hashlib.sha256(asked.encode()).hexdigest()


def _decode(text: str | None) -> ProbeResult | None:
    if text is None:
        return None
    try:
        return TypeAdapter(ProbeResult).validate_json(text)
    except ValidationError:
        return None


def _settled(deployment: Deployment, result: ProbeResult | None) -> Deployment:
    if result is None:
        return deployment
    return replace(
        deployment,
        tools=result.tools,
        calls_in_text=result.calls_in_text,
        enforces_tool_choice=result.enforces_tool_choice,
        json_schema=result.json_schema,
    )
