"""Opens what a model's check-up is done with: the real loop, in real sandboxes."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

from turnout.core.clock import SystemClock
from turnout.core.money import Price
from turnout.core.tasks import SurfaceName
from turnout.errors import ConfigError, ModelUnavailableError
from turnout.evals.checkup.run import STEPS, Tools
from turnout.gateway.config.tables import close_match
from turnout.gateway.providers.http import HttpUpstream
from turnout.runs.ports import Report
from turnout.settings import Settings
from turnout.store.database import open_database
from turnout.store.spend import SpendStore
from turnout.wiring.evaluation.grading import open_grading
from turnout.wiring.evaluation.local import installed_catalog, serve_local
from turnout.wiring.rooms import open_service
from turnout.wiring.sources import known_catalog
from turnout.wiring.state import database_of

__all__ = ["Examined", "models_of", "open_checkup"]


@dataclass(frozen=True, slots=True)
class Examined:
    """A model that is to be checked up."""

    model: str
    price: Price | None
    """The highest of its deployments'; None where one is unknown."""


async def models_of(settings: Settings, names: Sequence[str]) -> Sequence[Examined]:
    """Return the models that are named, else all whose key is set.

    `ConfigError` for a name that the catalog does not have; an endpoint of the environment may have
    any. `ModelUnavailableError` where there is none at all.
    """
    if not settings.catalog.deployments and settings.endpoint is not None and names:
        return [Examined(name, None) for name in dict.fromkeys(names)]
    if not settings.catalog.deployments and settings.endpoint is None:
        catalog = installed_catalog(settings)
    else:
        async with HttpUpstream(SystemClock()) as upstream:
            catalog = await known_catalog(settings, upstream)
    prices: dict[str, list[Price | None]] = {}
    for deployment in catalog.deployments:
        if names or not catalog.providers[deployment.provider].unset_key:
            prices.setdefault(deployment.model, []).append(deployment.price)
    for name in names:
        if name not in prices:
            raise ConfigError(f"There is no model {name!r}.", mend=close_match(name, list(prices)))
    if not prices:
        raise ModelUnavailableError(
            "Not one provider's key is set.", mend="Export the variables that hold the keys."
        )
    return [Examined(name, _dearest(prices[name])) for name in dict.fromkeys(names or prices)]


@asynccontextmanager
async def open_checkup(
    settings: Settings, model: str, surface: SurfaceName, seconds: float, report: Report
) -> AsyncIterator[Tools]:
    """Open it for one model, which every call is pinned to; a session takes `seconds` at most."""
    async with AsyncExitStack() as stack:
        local = await serve_local(settings, [model], stack, report)
        pinned = local.settings.with_model(model).with_max_steps(STEPS)
        agent = replace(pinned.agent, max_seconds=seconds, attempts=1, review="off")
        pinned = replace(pinned, agent=agent)
        grading = await stack.enter_async_context(open_grading(pinned))
        service = await stack.enter_async_context(open_service(pinned, report))
        database = await stack.enter_async_context(open_database(database_of(pinned)))
        receipts = SpendStore(database, SystemClock())
        extra = agent.extra_tools
        yield Tools(service, grading.grader, grading.places, receipts, surface, extra)


def _dearest(prices: Sequence[Price | None]) -> Price | None:
    known = [price for price in prices if price is not None]
    if len(known) < len(prices):
        return None
    return max(known, key=lambda price: (price.input, price.output))
