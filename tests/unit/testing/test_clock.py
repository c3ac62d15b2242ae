"""A frozen clock moves only when it is told to."""

from datetime import timedelta

from turnout.testing.clock import FrozenClock


async def test_a_sleeper_returns_at_once_and_time_has_passed() -> None:
    """Nothing waits, and both clocks agree on what passed."""
    clock = FrozenClock()
    began = clock.now()
    await clock.sleep(90)
    assert clock.now() - began == timedelta(seconds=90)
    assert (clock.monotonic(), clock.slept) == (90, [90])


def test_time_stands_still_and_never_goes_back() -> None:
    """Two looks see the same moment."""
    clock = FrozenClock()
    clock.advance(-5)
    assert clock.now() == clock.now()
    assert clock.monotonic() == 0
