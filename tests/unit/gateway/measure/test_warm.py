"""Where a session's cache is warm, and for how long."""

from dataclasses import replace

from turnout.core.usage import Usage
from turnout.gateway.measure.warm import WarmCaches
from turnout.testing.clock import FrozenClock
from turnout.testing.exchange import deployment

MARKED = replace(deployment("a/m"), caching="marks")
AUTOMATIC = replace(deployment("b/m"), caching="automatic")


def test_a_cache_is_warm_where_it_was_read_or_written_lately() -> None:
    """For five minutes from the last time, and in that session alone."""
    clock = FrozenClock()
    caches = WarmCaches(clock)
    caches.note("s", MARKED, Usage(2_000, 5, cache_creation_input_tokens=1_900))
    clock.advance(200)
    caches.note("s", AUTOMATIC, Usage(2_000, 5, cache_read_input_tokens=1_900))
    assert caches.of("s") == {MARKED.id, AUTOMATIC.id}
    assert caches.of("t") == frozenset()
    clock.advance(200)
    assert caches.of("s") == {AUTOMATIC.id}


def test_one_that_caches_by_itself_is_warm_after_a_long_prompt() -> None:
    """A short one is kept nowhere, and marks that were not counted warmed nothing."""
    caches = WarmCaches(FrozenClock())
    caches.note("s", AUTOMATIC, Usage(1_023, 5))
    caches.note("s", MARKED, Usage(90_000, 5))
    caches.note("s", deployment("c/m"), Usage(90_000, 5, cache_read_input_tokens=9))
    assert caches.of("s") == frozenset()
    caches.note("s", AUTOMATIC, Usage(1_024, 5))
    assert caches.of("s") == {AUTOMATIC.id}


def test_the_sessions_that_are_kept_are_bounded() -> None:
    """Those that were silent the longest are forgotten first."""
    caches = WarmCaches(FrozenClock(), sessions=2)
    for session in ("a", "b", "a", "c"):
        caches.note(session, AUTOMATIC, Usage(5_000, 1))
    assert [session for session in "abc" if caches.of(session)] == ["a", "c"]
