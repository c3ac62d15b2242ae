"""A clock that stands still until a test moves it."""

from datetime import UTC, datetime, timedelta

__all__ = ["FrozenClock"]


class FrozenClock:
    """A `Clock` whose sleepers return at once, having moved it by what they asked for."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed = 0.0
        self.slept: list[float] = []
        """Seconds of every `sleep`, in order."""

    def now(self) -> datetime:
        """Return the start, moved by what has passed."""
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        """Return the seconds that have passed."""
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        """Move the clock and return at once."""
        self.slept.append(seconds)
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass."""
        self._elapsed += max(0.0, seconds)
