"""Evaluations that routing goes by: for the command line, and for a gateway that runs."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from turnout.core.clock import Clock, SystemClock
from turnout.errors import ModelUnavailableError
from turnout.gateway.catalog import Catalog
from turnout.gateway.evaluations.desk import EvaluationDesk
from turnout.gateway.evaluations.preview import Prospect
from turnout.gateway.evidence import Snapshot
from turnout.settings import Settings
from turnout.store.audited import AuditedEvaluations
from turnout.store.database import open_database
from turnout.store.evaluations import EvaluationsStore
from turnout.wiring.gateway import Site
from turnout.wiring.policies import open_explainer, unset_keys
from turnout.wiring.state import database_of, hand_of

__all__ = ["EvaluationOffice", "desk_of", "open_evaluations"]


@dataclass(frozen=True, slots=True)
class EvaluationOffice:
    """What the command on evaluations works with."""

    desk: EvaluationDesk
    author: str
    """Whoever runs the command."""


@asynccontextmanager
async def open_evaluations(settings: Settings) -> AsyncIterator[EvaluationOffice]:
    """Open the evaluations of the store; a gateway that runs sees changes within seconds.

    Where no model is configured here, nothing is known of whom requests go to.
    """
    clock = SystemClock()
    async with (
        AsyncExitStack() as stack,
        open_database(database_of(settings)) as database,
    ):
        try:
            explainer = await stack.enter_async_context(open_explainer(settings))
        except ModelUnavailableError:
            prospect = Prospect((), Catalog(), Snapshot(), unset_keys)
        else:
            policies = explainer.book.default_first()
            prospect = Prospect(policies, explainer.catalog, explainer.evidence, unset_keys)
        hand = hand_of(database, clock)
        desk = EvaluationDesk(AuditedEvaluations(database, hand), clock, lambda: prospect)
        yield EvaluationOffice(desk, hand.actor)


def desk_of(site: Site, clock: Clock) -> EvaluationDesk:
    """Return the desk of a gateway that runs; its own decisions follow at once."""
    evidence = site.measures.evidence

    def look() -> Prospect:
        policies = site.book.default_first()
        return Prospect(policies, site.settled.catalog, evidence.snapshot(), unset_keys)

    store = EvaluationsStore(site.database)
    return EvaluationDesk(store, clock, look, learn=evidence.know_qualities)
