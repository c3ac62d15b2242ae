"""Makes a gateway: its engine, what the engine works with, and what runs beside it."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from starlette.types import ASGIApp

from turnout.agent.base import ModelClient
from turnout.core.clock import Clock
from turnout.core.govern.happenings import deployment_unhealthy
from turnout.core.ids import DeploymentId, ProviderName
from turnout.core.policies import Policy
from turnout.core.receipts import Receipt
from turnout.errors import ModelUnavailableError
from turnout.gateway.access import Authenticate
from turnout.gateway.app import Ready, build_app
from turnout.gateway.catalog import Catalog, ToolSupport
from turnout.gateway.connections.port import ToolConnections
from turnout.gateway.engine import Engine, EngineParts, Measures
from turnout.gateway.measure.circuits import Circuits
from turnout.gateway.measure.keeping import EvidenceKeeper
from turnout.gateway.measure.live import LiveEvidence
from turnout.gateway.measure.settle import Settled, evidence_keys, settle
from turnout.gateway.measure.unavailable import no_tool_support
from turnout.gateway.measure.warm import WarmCaches
from turnout.gateway.notices.notices import Notices
from turnout.gateway.policy.book import PolicyBook
from turnout.gateway.policy.ports import PolicyStore
from turnout.gateway.providers.http import HttpUpstream
from turnout.gateway.routes.counting import counting_routes
from turnout.gateway.routes.models import model_routes
from turnout.gateway.routes.receipts import receipt_routes
from turnout.gateway.routes.responses import response_routes
from turnout.gateway.stages.attempts.fallback import Limits
from turnout.gateway.stages.connected import ConnectedServing
from turnout.gateway.stages.counting import Counting
from turnout.gateway.stages.recording import EngineStores
from turnout.gateway.stages.replay import Replays
from turnout.gateway.stages.serving import Serving
from turnout.gateway.wire.shapes import CHAT, HEARD, MESSAGES, RESPONSES, SPOKEN
from turnout.localmodel.models import find_installed, models_folder
from turnout.localmodel.serve import LocalServer
from turnout.runs.ports import ModelAccess, Report, StrategyName
from turnout.settings import Settings, secret_value
from turnout.store.affinity import AffinityStore
from turnout.store.books import BooksStore
from turnout.store.database import Database
from turnout.store.evidence import EvidenceStore
from turnout.store.probes import ProbesStore
from turnout.store.receipts import ReceiptsStore
from turnout.store.replies import RepliesStore
from turnout.store.responses import ResponsesStore
from turnout.store.turns import TurnsStore
from turnout.wiring.accounts import open_accounts
from turnout.wiring.connections import open_connections
from turnout.wiring.sources import (
    abilities,
    check_counted,
    check_keys,
    check_names,
    check_reviewer,
    choose,
    known_catalog,
    local_catalog,
    no_model,
    unlisted,
    was_discovered,
)
from turnout.wiring.state import keep_house
from turnout.wiring.usage import open_notices

__all__ = ["Ground", "Site", "access_for", "app_of", "ground_of", "site_of"]


@dataclass(frozen=True, slots=True)
class Ground:
    """What a gateway is built on."""

    settings: Settings
    database: Database
    clock: Clock
    stack: AsyncExitStack
    """Ends what was started, with the process's command."""
    upstream: HttpUpstream


@dataclass(frozen=True, slots=True)
class Site:
    """A gateway's engine and what it works with."""

    engine: Engine
    settled: Settled
    measures: Measures
    book: PolicyBook
    notices: Notices
    database: Database
    connections: ToolConnections
    """Those of the gateway, as requests use them."""
    doubt: str = ""
    """What speaks against the model that was asked for."""


async def ground_of(
    settings: Settings, database: Database, clock: Clock, stack: AsyncExitStack
) -> Ground:
    """Return what a gateway is built on; what it opens ends with `stack`."""
    accounts = open_accounts(settings.catalog, clock)
    upstream = await stack.enter_async_context(HttpUpstream(clock, accounts))
    return Ground(settings, database, clock, stack, upstream)


async def site_of(
    ground: Ground,
    report: Report,
    local_tools: ToolSupport,
    store: PolicyStore | None = None,
    on_receipt: Callable[[Receipt], None] | None = None,
) -> Site:
    """Find the models and make the gateway.

    `local_tools` says whether the local model's tool support is worth a probe.
    """
    settings = ground.settings
    if settings.catalog.deployments or settings.endpoint is not None:
        catalog = await known_catalog(settings, ground.upstream)
    else:
        catalog = await _local_catalog(ground, report, local_tools)
    check_names(settings, catalog)
    check_keys(catalog)
    doubt = await unlisted(settings, ground.upstream)
    try:
        site = await _build(ground, catalog, store, report=report, on_receipt=on_receipt)
    except ModelUnavailableError as error:
        raise ModelUnavailableError(error.message, mend=f"{error.mend} {doubt}".strip()) from error
    if was_discovered(settings) and len(catalog.deployments) > 1:
        report(f"{abilities(site.settled.catalog)}; set LLM_MODEL to use one only")
    return replace(site, doubt=doubt)


async def _build(
    ground: Ground,
    catalog: Catalog,
    store: PolicyStore | None,
    *,
    report: Report,
    on_receipt: Callable[[Receipt], None] | None = None,
) -> Site:
    """Settle what is unknown of the models and make the engine.

    With a `store` its policies win over those of the settings. `on_receipt` is told of each
    receipt, and must not wait.
    """
    clock, database = ground.clock, ground.database
    settled = await settle(
        catalog,
        ground.upstream,
        SPOKEN,
        ProbesStore(database),
        clock,
        lambda: report("making sure of what the models can do"),
    )
    notices = await ground.stack.enter_async_context(open_notices(database, clock))
    measures = await _measures(ground, settled, notices)
    book = PolicyBook(ground.settings.policies, store)
    await book.refresh()
    if store is not None:
        _beside(ground.stack, book.keep_fresh(clock))
        _beside(ground.stack, keep_house(database, clock, ground.settings.service.retention))
    books = BooksStore(database)
    connections = await open_connections(ground.settings, clock, ground.stack)
    parts = EngineParts(
        policies=book,
        catalog=settled.catalog,
        serving=_serving(ground, settled.catalog, measures, books, connections),
        counting=Counting(ground.upstream, settled.catalog, MESSAGES),
        stores=EngineStores(
            books,
            ReceiptsStore(database),
            AffinityStore(database),
            ResponsesStore(database),
            Replays(RepliesStore(database), clock),
        ),
        measures=measures,
        noticing=_Told(notices, on_receipt),
        provider_keys=_ProviderKeys(),
        clock=clock,
        propagate=ground.settings.observe.propagate,
    )
    engine = Engine(parts)
    ground.stack.push_async_callback(engine.close)
    return Site(engine, settled, measures, book, notices, database, connections)


def app_of(
    site: Site,
    authenticate: Authenticate,
    admin: ASGIApp | None = None,
    ready: Ready = lambda: True,
) -> ASGIApp:
    """Return the application that serves a gateway."""
    engine = site.engine
    routes = [
        *model_routes(engine, authenticate, CHAT, MESSAGES),
        *receipt_routes(engine, authenticate, CHAT),
        *response_routes(ResponsesStore(site.database), authenticate, RESPONSES),
        *counting_routes(engine, authenticate, MESSAGES),
    ]

    def can_serve() -> bool:
        return engine.writable and ready()

    return build_app(engine, authenticate, HEARD, routes=routes, admin=admin, ready=can_serve)


async def _measures(ground: Ground, settled: Settled, notices: Notices) -> Measures:
    clock = ground.clock

    def unhealthy(deployment: DeploymentId, why: str) -> None:
        notices.happened(deployment_unhealthy(clock.now(), deployment, why))

    circuits = Circuits(clock, on_unhealthy=unhealthy)
    evidence = LiveEvidence(clock, settled.results, circuits=circuits)
    keys = evidence_keys(settled.catalog)
    keeper = EvidenceKeeper(
        evidence, EvidenceStore(ground.database), keys, ProbesStore(ground.database)
    )
    await keeper.start()
    ground.stack.push_async_callback(keeper.close)
    return Measures(evidence, WarmCaches(clock))


def _serving(
    ground: Ground,
    catalog: Catalog,
    measures: Measures,
    books: BooksStore,
    connections: ToolConnections,
) -> ConnectedServing:
    upstream, clock = ground.upstream, ground.clock
    serving = Serving(upstream, SPOKEN, HEARD, catalog, measures.evidence, clock, Limits())
    turns = TurnsStore(ground.database, clock)
    return ConnectedServing(serving, connections, turns, catalog, clock, left=books.left)


class _Told:
    """Tells whoever wants to know of a receipt."""

    def __init__(self, notices: Notices, on_receipt: Callable[[Receipt], None] | None) -> None:
        self._notices = notices
        self._on_receipt = on_receipt

    def saw(self, receipt: Receipt) -> None:
        self._notices.saw(receipt)
        if self._on_receipt is not None:
            self._on_receipt(receipt)


class _ProviderKeys:
    """Reads the variables that policies name, at the moment of the request."""

    def of(self, policy: Policy) -> Mapping[ProviderName, str]:
        named = ((ProviderName(name), secret_value(at)) for name, at in policy.provider_keys)
        return {name: key for name, key in named if key}

    def unset(self, policy: Policy) -> Mapping[ProviderName, str]:
        named = policy.provider_keys
        return {ProviderName(name): at for name, at in named if not secret_value(at)}


def _beside(stack: AsyncExitStack, work: Coroutine[Any, Any, None]) -> None:
    """Run work beside the gateway until it ends."""
    task = asyncio.create_task(work)

    async def end() -> None:
        task.cancel()
        await asyncio.wait({task})

    stack.push_async_callback(end)


async def _local_catalog(ground: Ground, report: Report, tools: ToolSupport) -> Catalog:
    installed = find_installed(models_folder(ground.settings.home))
    if installed is None:
        raise no_model()
    report(f"starting the local model {installed.model.name}")
    server = await ground.stack.enter_async_context(LocalServer(installed.path))
    return local_catalog(server.model_name, server.base_url, tools)


def access_for(settings: Settings, site: Site) -> Callable[[ModelClient], ModelAccess]:
    """Return what makes access of a client of the site's gateway.

    `ModelUnavailableError` where no model can do the job, or not under a cap on spend.
    """
    check_counted(settings.agent, settings.policy, site.settled.catalog)
    return partial(
        ModelAccess,
        strategy=_strategy(settings, site),
        warnings=_warnings(settings, site),
        escalated=_escalated(settings, site),
    )


def _strategy(settings: Settings, site: Site) -> StrategyName:
    settled = site.settled
    try:
        return choose(settings, settled.catalog, site.measures.evidence.snapshot())
    except ModelUnavailableError:
        if [result.tools for result in settled.results] == ["absent"]:
            (result,) = settled.results
            deployment = settled.catalog.deployment(result.deployment)
            if deployment is not None:
                provider = settled.catalog.providers[deployment.provider]
                raise no_tool_support(result, provider) from None
        raise


def _escalated(settings: Settings, site: Site) -> StrategyName | None:
    """Return the strategy for what serves act steps that are routed for quality."""
    evidence = site.measures.evidence.snapshot()
    try:
        return choose(settings, site.settled.catalog, evidence, "quality")
    except ModelUnavailableError:
        return None


def _warnings(settings: Settings, site: Site) -> tuple[str, ...]:
    unpriced = [d.id for d in site.settled.catalog.deployments if d.price is None]
    warnings = [f"{error.message} {error.mend}" for error in site.settled.failures.values()]
    evidence = site.measures.evidence.snapshot()
    warnings += filter(None, [site.doubt, check_reviewer(settings, site.settled.catalog, evidence)])
    catalog = site.settled.catalog
    used = dict.fromkeys(d.provider for d in catalog.deployments)
    warnings += [
        f"{name} is left out: {catalog.providers[name].unset_key} is not set."
        for name in used
        if catalog.providers[name].unset_key
    ]
    if unpriced and (settings.policy.session.max_spend, settings.agent.max_spend) != (None, None):
        warnings.append(
            f"The price of {', '.join(unpriced)} is unknown: no cap on spend can count it."
        )
    return tuple(warnings)
