"""Measuring models, and keeping what was found."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from turnout.core.clock import SystemClock
from turnout.errors import ConfigError, ModelUnavailableError
from turnout.gateway.catalog import Catalog, Deployment
from turnout.gateway.config.tables import close_match
from turnout.gateway.evidence import ProbeResult
from turnout.gateway.measure.examine import Examiner, ExamLimits
from turnout.gateway.measure.probing import Prober
from turnout.gateway.providers.http import HttpUpstream
from turnout.gateway.wire.shapes import SPOKEN
from turnout.settings import Settings
from turnout.store.database import open_database
from turnout.store.probes import ProbesStore
from turnout.wiring.accounts import open_accounts
from turnout.wiring.sources import known_catalog
from turnout.wiring.state import database_of

__all__ = ["Probed", "probe_models"]


@dataclass(frozen=True, slots=True)
class Probed:
    """What became of one deployment's probe."""

    deployment: Deployment
    outcome: ProbeResult | ModelUnavailableError


async def probe_models(
    settings: Settings,
    names: Sequence[str],
    limits: ExamLimits,
    *,
    on_begin: Callable[[Deployment], None],
    on_answer: Callable[[int, int], None],
) -> AsyncIterator[Probed]:
    """Probe deployments one after the other, and keep what each showed.

    `names` are models or deployments; none: all whose key is set. `ConfigError` for a name that
    the catalog does not have, `ModelUnavailableError` where there is nothing to probe.
    """
    clock = SystemClock()
    accounts = open_accounts(settings.catalog, clock)
    async with (
        open_database(database_of(settings)) as database,
        HttpUpstream(clock, accounts) as upstream,
    ):
        if not settings.catalog.deployments and settings.endpoint is None:
            raise ModelUnavailableError(
                "No endpoint is configured whose models could be probed.",
                mend="Name deployments in turnout.toml, or set LLM_BASE_URL; the local model has "
                "an address while `turnout models serve` runs.",
            )
        catalog = await known_catalog(settings, upstream)
        prober = Prober(catalog, upstream, SPOKEN, ProbesStore(database), clock)
        examiner = Examiner(clock, limits, on_answer)
        for deployment in _chosen(catalog, names):
            on_begin(deployment)
            yield Probed(deployment, await prober.probe(deployment, examiner))


def _chosen(catalog: Catalog, names: Sequence[str]) -> Sequence[Deployment]:
    known = [*(d.model for d in catalog.deployments), *(d.id for d in catalog.deployments)]
    for name in names:
        if name not in known:
            raise ConfigError(
                f"There is no model or deployment {name!r}.", mend=close_match(name, known)
            )
    if names:
        return [d for d in catalog.deployments if {d.model, d.id} & set(names)]
    usable = [d for d in catalog.deployments if not catalog.providers[d.provider].unset_key]
    if not usable:
        raise ModelUnavailableError(
            "Not one provider's key is set.", mend="Export the variables that hold the keys."
        )
    return usable
