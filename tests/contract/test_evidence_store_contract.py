from datetime import UTC, datetime, timedelta

import pytest
from tests.samples import STRANGE

from turnout.core.govern.evidence import Observation, QualityResult, Rates, fold
from turnout.store.evidence import EvidenceStore
from turnout.testing.stores import MemoryEvidenceStore

AT = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture(params=["memory", "sql"])
def store(request, database):
    """Return an empty one of each kind."""
    return MemoryEvidenceStore() if request.param == "memory" else EvidenceStore(database)


def observations(*seconds):
    """Return one observation at each moment."""
    return [Observation(float(s), 100.0 + s, 50.0, calls=2, malformed=1) for s in seconds]


async def test_nothing_is_known_of_what_was_never_seen(store):
    """Not even zeros."""
    assert await store.rates(["a", "b"]) == {}
    assert await store.merge_rates({}) == {}
    assert await store.qualities() == ()


async def test_observations_are_folded_into_what_is_kept(store):
    """As the live evidence would fold them, each key apart."""
    first = await store.merge_rates({"a": observations(1, 2), STRANGE: observations(9)})
    again = await store.merge_rates({"a": observations(3)})
    assert first["a"] == fold(Rates(), observations(1, 2))
    assert again == {"a": fold(Rates(), observations(1, 2, 3))}
    assert await store.rates(["a", STRANGE]) == {**again, STRANGE: first[STRANGE]}


async def test_the_newest_quality_of_a_subject_and_kind_is_kept(store):
    """An older result that comes late changes nothing."""
    newer = QualityResult(STRANGE, "coding", 3, 4, AT + timedelta(days=1), STRANGE)
    other = QualityResult("m", "chat", 1, 2, AT, "eval")
    for result in (QualityResult(STRANGE, "coding", 1, 4, AT, "eval"), newer, other):
        await store.put_quality(result)
    await store.put_quality(QualityResult(STRANGE, "coding", 0, 4, AT, "eval"))
    assert set(await store.qualities()) == {newer, other}
