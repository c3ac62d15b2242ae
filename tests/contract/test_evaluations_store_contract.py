"""Every store of evaluations keeps the same promises."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.samples import STRANGE

from turnout.core.govern.evidence import Evaluation, Score, in_force
from turnout.errors import NotFoundError
from turnout.store.evaluations import EvaluationsStore
from turnout.store.evidence import EvidenceStore
from turnout.testing.memory.evaluations import MemoryEvaluationsStore

AT = datetime(2026, 1, 1, 12, tzinfo=UTC)
FIRST = Evaluation("first", "coding", "hidden", AT, STRANGE, (Score(STRANGE, 3, 4),), "ann", AT)
FIRST = replace(FIRST, tasks="the set")
SECOND = replace(FIRST, id="second", scores=(Score(STRANGE, 1, 4), Score("n", 2, 4)))


@pytest.fixture(params=["memory", "sql"])
def store(request, database):
    """Return an empty one of each kind."""
    return MemoryEvaluationsStore() if request.param == "memory" else EvaluationsStore(database)


async def test_evaluations_come_back_in_the_order_in_which_they_were_applied(store):
    """Whatever they hold; one that is applied again is the last again."""
    assert list(await store.applied()) == []
    assert await store.apply(FIRST)
    assert await store.apply(SECOND)
    assert list(await store.applied()) == [FIRST, SECOND]
    assert await store.apply(FIRST)
    assert list(await store.applied()) == [SECOND, FIRST]


async def test_what_is_applied_twice_is_applied_once(store):
    """Who applied it first stays on it."""
    assert await store.apply(FIRST)
    assert not await store.apply(replace(FIRST, author="bob"))
    assert list(await store.applied()) == [FIRST]
    assert await store.apply(replace(FIRST, beside=True))
    assert list(await store.applied()) == [replace(FIRST, beside=True)]


async def test_what_is_taken_back_is_gone(store):
    """Once."""
    await store.apply(FIRST)
    await store.apply(SECOND)
    await store.undo("second")
    assert list(await store.applied()) == [FIRST]
    with pytest.raises(NotFoundError, match="second"):
        await store.undo("second")


async def test_decisions_find_what_counts_of_them(database):
    """In the store that gateways read, from the same moment on."""
    evaluations, evidence = EvaluationsStore(database), EvidenceStore(database)
    await evaluations.apply(FIRST)
    await evaluations.apply(SECOND)
    assert await evidence.qualities() == in_force([FIRST, SECOND])
    await evaluations.undo("second")
    assert await evidence.qualities() == FIRST.results()
    await evaluations.undo("first")
    assert await evidence.qualities() == ()
