"""Joins the pages of governance with the gateway that they are about."""

from functools import partial

from turnout.core.ids import DeploymentId
from turnout.gateway.evidence import ProbeResult
from turnout.gateway.measure.probing import ProbeDesk, Prober
from turnout.gateway.measure.settle import kept_result
from turnout.gateway.wire.shapes import SPOKEN
from turnout.store.probes import ProbesStore
from turnout.web.console.govern.parts import ConnectionsKnown, GovernParts, ModelsKnown, Noticed
from turnout.web.console.govern.views.models import ModelsSeen
from turnout.web.runs.streams import Streams
from turnout.wiring.console.desks import Governing
from turnout.wiring.gateway import Ground, Site
from turnout.wiring.keys import doubt_of
from turnout.wiring.state import results_folder_of

__all__ = ["govern_parts"]


def govern_parts(
    ground: Ground, site: Site, desks: Governing, streams: Streams, *, models: bool
) -> GovernParts:
    """Return what the pages work with; `models` says whether this process serves any.

    Probes that still run end with the ground's stack.
    """
    office, settings = desks.office, ground.settings
    return GovernParts(
        policies=desks.policies,
        keys=desks.keys,
        noticed=Noticed(
            office.usage, office.tools, office.happenings, desks.audit, office.webhooks
        ),
        engine=site.engine if models else None,
        models=_models_known(ground, site),
        connections=ConnectionsKnown(
            site.connections.tools, settings.connections, settings.agent.mcp
        ),
        evaluations=desks.evaluations,
        results=results_folder_of(settings),
        clock=ground.clock,
        streams=streams,
        doubt=partial(doubt_of, settings),
    )


def _models_known(ground: Ground, site: Site) -> ModelsKnown:
    catalog, clock, evidence = site.settled.catalog, ground.clock, site.measures.evidence
    store = ProbesStore(ground.database)
    prober = Prober(catalog, ground.upstream, SPOKEN, store, clock)
    probes = ProbeDesk(prober, evidence.learn)
    ground.stack.push_async_exit(probes)

    def seen() -> ModelsSeen:
        return ModelsSeen(
            catalog=catalog,
            evidence=evidence.snapshot(),
            now=clock.now(),
            ailing=evidence.circuits.ailing(),
            failures=site.settled.failures,
            standings=probes.standings(),
            newest=evidence.circuits.newest(),
        )

    async def probed(wanted: DeploymentId) -> ProbeResult | None:
        deployment = catalog.deployment(wanted)
        if deployment is None:
            return None
        return await kept_result(store, catalog.providers[deployment.provider], deployment)

    return ModelsKnown(seen, probes, probed)
