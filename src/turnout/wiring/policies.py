"""Policies for the command line: the store's, and what requests would become under them."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from turnout.core.clock import Clock, SystemClock
from turnout.core.ids import ProviderName
from turnout.core.policies import Policy
from turnout.gateway.catalog import Catalog
from turnout.gateway.evidence import Snapshot
from turnout.gateway.measure.keeping import EvidenceKeeper
from turnout.gateway.measure.live import LiveEvidence
from turnout.gateway.measure.settle import evidence_keys, kept_result, settled_by
from turnout.gateway.policy.book import PolicyBook
from turnout.gateway.policy.desk import PolicyDesk
from turnout.gateway.policy.explain import Explainer
from turnout.gateway.policy.report import ToolReports
from turnout.gateway.providers.http import HttpUpstream
from turnout.settings import Settings, secret_value
from turnout.store.audited import AuditedPolicies
from turnout.store.database import Database, open_database
from turnout.store.evidence import EvidenceStore
from turnout.store.policies import PoliciesStore
from turnout.store.probes import ProbesStore
from turnout.store.tools import ToolsStore
from turnout.wiring.sources import known_catalog
from turnout.wiring.state import database_of, hand_of

__all__ = ["PolicyOffice", "open_explainer", "open_policies", "unset_keys"]


@dataclass(frozen=True, slots=True)
class PolicyOffice:
    """What the commands on policies work with."""

    desk: PolicyDesk
    reports: ToolReports
    clock: Clock


@asynccontextmanager
async def open_policies(settings: Settings) -> AsyncIterator[PolicyOffice]:
    """Open the policies of the store; a gateway that runs sees changes within a second."""
    clock = SystemClock()
    async with open_database(database_of(settings)) as database:
        store = AuditedPolicies(database, hand_of(database, clock))
        desk = PolicyDesk(store, settings.catalog, clock, own=settings.policies)
        yield PolicyOffice(desk, ToolsStore(database), clock)


@asynccontextmanager
async def open_explainer(settings: Settings) -> AsyncIterator[Explainer]:
    """Open what explains decisions; no model is called, and what was never probed is unknown."""
    clock = SystemClock()
    async with (
        open_database(database_of(settings)) as database,
        HttpUpstream(clock) as upstream,
    ):
        book = PolicyBook(settings.policies, PoliciesStore(database))
        await book.refresh()
        catalog, evidence = await _known(await known_catalog(settings, upstream), database, clock)
        yield Explainer(book, catalog, evidence, unset_keys)


async def _known(catalog: Catalog, database: Database, clock: Clock) -> tuple[Catalog, Snapshot]:
    """Return the catalog and the evidence with what probes and live traffic have shown so far."""
    store = ProbesStore(database)
    shown = {
        d.id: await kept_result(store, catalog.providers[d.provider], d)
        for d in catalog.deployments
    }
    known = replace(
        catalog, deployments=tuple(settled_by(d, shown[d.id]) for d in catalog.deployments)
    )
    evidence = LiveEvidence(clock, [result for result in shown.values() if result is not None])
    keeper = EvidenceKeeper(evidence, EvidenceStore(database), evidence_keys(known), store)
    await keeper.exchange()
    return known, evidence.snapshot()


def unset_keys(policy: Policy) -> Mapping[ProviderName, str]:
    """Return the variables that are not set, of those that a policy names, by provider."""
    return {
        ProviderName(provider): variable
        for provider, variable in policy.provider_keys
        if not secret_value(variable)
    }
