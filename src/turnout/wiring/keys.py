"""Opens the keys of the store for the command line."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from turnout.core.clock import SystemClock
from turnout.core.govern.keys import KeyRecord
from turnout.core.govern.revisions import DEFAULT_POLICY
from turnout.errors import ModelUnavailableError
from turnout.gateway.catalog import Catalog
from turnout.gateway.keys.desk import KeyDesk
from turnout.settings import Settings
from turnout.store.audited import AuditedKeys
from turnout.store.database import open_database
from turnout.store.policies import PoliciesStore
from turnout.wiring.sources import check_priced, endpoint_catalog
from turnout.wiring.state import database_of, hand_of

__all__ = ["doubt_of", "open_keys"]


@asynccontextmanager
async def open_keys(settings: Settings) -> AsyncIterator[KeyDesk]:
    """Open the desk where keys are made and changed; who does it is on record."""
    clock = SystemClock()
    async with open_database(database_of(settings)) as database:
        store = PoliciesStore(database)

        async def names() -> Collection[str]:
            newest = {revision.policy.name for revision in await store.newest()}
            return {DEFAULT_POLICY, *newest, *(policy.name for policy in settings.policies)}

        keys = AuditedKeys(database, hand_of(database, clock))
        yield KeyDesk(keys, clock, policies=names)


async def doubt_of(settings: Settings, record: KeyRecord) -> str:
    """Return a warning where the cap on spend of a key keeps it from every model; empty: none.

    As far as settings and environment name the models: no endpoint is asked for its own.
    """
    per_day = record.limits.spend_per_day
    if per_day is None:
        return ""
    async with open_database(database_of(settings)) as database:
        newest = [revision.policy for revision in await PoliciesStore(database).newest()]
    by_name = {policy.name: policy for policy in (*settings.policies, *newest)}
    policy = by_name.get(record.policies[0], settings.policy)
    try:
        check_priced(settings.agent, policy, _named(settings), per_day)
    except ModelUnavailableError as error:
        return f"{error.message} {error.mend}"
    return ""


def _named(settings: Settings) -> Catalog:
    endpoint = settings.endpoint
    if settings.catalog.deployments or endpoint is None or endpoint.model is None:
        return settings.catalog
    return endpoint_catalog(endpoint, (endpoint.model,))
