import asyncio
from dataclasses import replace

import pytest
from tests.samples import NOON, STRANGE

from turnout.core.govern.revisions import PolicyRevision
from turnout.core.policies import Policy, PoolRule, ToolRule
from turnout.errors import ConflictError
from turnout.store.policies import PoliciesStore
from turnout.testing.stores import MemoryPoliciesStore


@pytest.fixture(params=["memory", "sql"])
def store(request, database):
    """Return an empty one of each kind."""
    return MemoryPoliciesStore() if request.param == "memory" else PoliciesStore(database)


def revision(name, number, **changes):
    """Return a revision of a policy."""
    return PolicyRevision(Policy(name=name, revision=number, **changes), "ann", NOON)


async def test_every_revision_stays_as_it_was_written(store):
    """The newest first, with whatever characters it holds."""
    first = revision("team", 1, pool=PoolRule((STRANGE,)))
    second = replace(
        revision("team", 2, tools=ToolRule("enforce", (STRANGE,))), note=STRANGE, restores=1
    )
    await store.add([first])
    await store.add([second])
    assert await store.history("team") == (second, first)
    assert await store.history("team", limit=1) == (second,)
    assert await store.get("team", 1) == first
    assert await store.get("team", 3) is None
    assert await store.get("tea", 1) is None
    assert await store.history("other") == ()


async def test_the_newest_of_every_policy_is_what_counts(store):
    """By name."""
    await store.add([revision("b", 1), revision("a", 1)])
    await store.add([revision("a", 2, objective="cost")])
    assert await store.newest() == (revision("a", 2, objective="cost"), revision("b", 1))


async def test_the_count_grows_with_every_revision(store):
    """It tells that something changed without reading it all."""
    assert await store.count() == 0
    await store.add([revision("a", 1), revision("b", 1)])
    await store.add([revision("a", 2)])
    assert await store.count() == 3


@pytest.mark.parametrize("number", [0, 1, 3])
async def test_a_revision_that_does_not_follow_the_newest_is_a_conflict(store, number):
    """Nothing that came with it is written either."""
    await store.add([revision("a", 1)])
    with pytest.raises(ConflictError, match="'a' was changed meanwhile"):
        await store.add([revision("b", 1), revision("a", number)])
    assert await store.newest() == (revision("a", 1),)


async def test_of_writers_at_the_same_time_one_is_first(store):
    """The others are told, and no revision is lost or written twice."""
    added = await asyncio.gather(
        *(store.add([revision("a", 1, min_quality=n / 10)]) for n in range(8)),
        return_exceptions=True,
    )
    assert added.count(None) == 1
    assert sum(isinstance(one, ConflictError) for one in added) == 7
    assert len(await store.history("a")) == 1
