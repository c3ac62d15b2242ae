"""Revisions under several processes, and what is told of them."""

import asyncio
from contextlib import AsyncExitStack, suppress

from sqlalchemy.dialects import postgresql
from sqlalchemy.sql.expression import Executable
from tests.samples import NOON

from turnout.core.govern.revisions import PolicyRevision
from turnout.core.policies import Policy
from turnout.errors import ConflictError
from turnout.store import policies
from turnout.store.database import open_database
from turnout.store.happenings import HappeningsStore
from turnout.store.policies import PoliciesStore


def revision(number: int, note: str = "", name: str = "team") -> PolicyRevision:
    """Return a revision."""
    return PolicyRevision(Policy(name=name, revision=number), "ann", NOON, note)


async def test_processes_that_write_at_once_never_collide(tmp_path):
    """Each revision is written by exactly one of them; the others are told."""
    async with AsyncExitStack() as stack:
        opened = [
            await stack.enter_async_context(open_database(tmp_path / "turnout.db"))
            for _ in range(4)
        ]
        stores = [PoliciesStore(database) for database in opened]

        async def write(store: PoliciesStore, writer: int) -> int:
            written = 0
            for number in range(1, 6):
                try:
                    await store.add([revision(number, f"by {writer}")])
                    written += 1
                except ConflictError:
                    continue
            return written

        written = await asyncio.gather(*(write(s, n) for n, s in enumerate(stores)))
        history = await stores[0].history("team")
        assert sum(written) == len(history)
        assert [one.policy.revision for one in history] == list(range(len(history), 0, -1))
        assert history


async def test_every_revision_is_told_and_a_refused_one_is_not(tmp_path):
    """As `policy.changed`, in the same transaction."""
    async with open_database(tmp_path / "turnout.db") as database:
        store = PoliciesStore(database)
        await store.add([revision(1, "why"), revision(1, name="other")])
        with suppress(ConflictError):
            await store.add([revision(2), revision(7, name="other")])
        told = await HappeningsStore(database).newest(limit=10)
    assert {(one.kind, one.subject) for one in told} == {
        ("policy.changed", "team"),
        ("policy.changed", "other"),
    }
    assert any("by ann: why" in one.text for one in told)


def test_every_statement_is_one_for_postgresql_too():
    """Each compiles there."""
    statements = [s for s in vars(policies).values() if isinstance(s, Executable)]
    assert len(statements) >= 6
    for statement in statements:
        statement.compile(dialect=postgresql.dialect())
