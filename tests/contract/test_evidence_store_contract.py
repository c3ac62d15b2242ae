import pytest
from tests.samples import STRANGE

from turnout.core.govern.evidence import Observation, Rates, fold
from turnout.store.evidence import EvidenceStore
from turnout.testing.stores import MemoryEvidenceStore


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
