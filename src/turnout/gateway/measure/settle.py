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
from turnout.gateway.dialog.conversation import Shape
from turnout.gateway.evidence import ProbeResult
from turnout.gateway.exchange import UpstreamError
from turnout.gateway.measure.asking import Asking
from turnout.gateway.measure.probe import probe
from turnout.gateway.measure.unavailable import unavailable
from turnout.gateway.ports import ProbeStore, Upstream
from turnout.gateway.wire.base import UpstreamShape

__all__ = [
    "Settled",
    "decode_result",
    "discover",
    "evidence_keys",
    "keep_result",
    "kept_result",
    "settle",
    "settled_by",
]

_GOOD_FOR = timedelta(days=30)
_BAD_FOR = timedelta(minutes=10)
"""A server that was started anew with other options is not told of its past for long."""
_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Settled:
    """A catalog without unknowns, as far as its providers could be asked."""

    catalog: Catalog
    results: tuple[ProbeResult, ...]
    """Of every deployment whose tool support was unknown, or that was once examined."""
    failures: Mapping[DeploymentId, ModelUnavailableError]
    """Deployments that could not be asked; their tool support stays unknown."""


async def settle(
    catalog: Catalog,
    upstream: Upstream,
    shapes: Mapping[Shape, UpstreamShape],
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
    asking = _Settling(upstream, shapes, store, clock, on_probe)
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
    stated = [d for d in catalog.deployments if d.tools != "unknown"]
    examined = [await kept_result(store, catalog.providers[d.provider], d) for d in stated]
    deployments = tuple(settled_by(d, results.get(d.id)) for d in catalog.deployments)
    seen = (*results.values(), *(r for r in examined if r is not None and r.examined))
    return Settled(replace(catalog, deployments=deployments), seen, failures)


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
        shapes: Mapping[Shape, UpstreamShape],
        store: ProbeStore,
        clock: Clock,
        on_probe: Callable[[], object],
    ) -> None:
        self._upstream = upstream
        self._shapes = shapes
        self._store = store
        self._clock = clock
        self._on_probe = on_probe
        self._probing = False
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def result(
        self, provider: Provider, deployment: Deployment
    ) -> ProbeResult | ModelUnavailableError:
        """Return the kept result or a new one, or why there is none."""
        kept = await kept_result(self._store, provider, deployment)
        if kept is not None and self._clock.now() - kept.at < _lasts(kept):
            return kept
        self._tell()
        shape = self._shapes[provider.shape]
        asking = Asking(self._upstream, shape, provider, deployment, self._clock)
        async with self._slots:
            try:
                fresh = await probe(asking, self._clock)
            except UpstreamError as error:
                return unavailable(error, provider, deployment)
        if kept is not None:
            fresh = replace(fresh, examined=kept.examined)
        await keep_result(self._store, provider, deployment, fresh)
        return fresh

    def _tell(self) -> None:
        if not self._probing:
            self._probing = True
            self._on_probe()


def _lasts(result: ProbeResult) -> timedelta:
    """Return for how long a result saves a probe."""
    return _GOOD_FOR if result.tools == "confirmed" else _BAD_FOR


def evidence_keys(catalog: Catalog) -> Mapping[DeploymentId, str]:
    """Return what the evidence of each deployment is kept under."""
    return {d.id: _key(catalog.providers[d.provider], d) for d in catalog.deployments}


async def kept_result(
    store: ProbeStore, provider: Provider, deployment: Deployment
) -> ProbeResult | None:
    """Return what a deployment's newest probe showed; None where there was none."""
    kept = decode_result(await store.get(_key(provider, deployment)))
    return None if kept is None else replace(kept, deployment=deployment.id)


async def keep_result(
    store: ProbeStore, provider: Provider, deployment: Deployment, result: ProbeResult
) -> None:
    """Keep what a probe showed, in place of what an earlier one did."""
    text = TypeAdapter(ProbeResult).dump_json(result).decode()
    await store.put(_key(provider, deployment), text)


def _key(provider: Provider, deployment: Deployment) -> str:
    """Return the hash of endpoint and model: names in a catalog may change."""
    asked = f"{provider.base_url}\n{deployment.upstream_name}"
    return hashlib.sha256(asked.encode()).hexdigest()


def decode_result(text: str | None) -> ProbeResult | None:
    """Return what a store kept of a probe; None where that is nothing, or in a form not known."""
    if text is None:
        return None
    try:
        return TypeAdapter(ProbeResult).validate_json(text)
    except ValidationError:
        return None


def settled_by(deployment: Deployment, result: ProbeResult | None) -> Deployment:
    """Return a deployment with what a probe showed in place of what was unknown."""
    if result is None or deployment.tools != "unknown":
        return deployment
    return replace(
        deployment,
        tools=result.tools,
        calls_in_text=result.calls_in_text,
        enforces_tool_choice=result.enforces_tool_choice,
        json_schema=result.json_schema,
    )
