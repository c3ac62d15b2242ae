"""Opens the keys of the store for the command line."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from turnout.core.clock import SystemClock
from turnout.core.govern.revisions import DEFAULT_POLICY
from turnout.gateway.keys.desk import KeyDesk
from turnout.settings import Settings
from turnout.store.audited import AuditedKeys
from turnout.store.database import open_database
from turnout.store.policies import PoliciesStore
from turnout.wiring.state import database_of, hand_of

__all__ = ["open_keys"]


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
