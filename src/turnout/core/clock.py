"""Time as a dependency, so that tests own it."""

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

__all__ = ["Clock", "Deadline", "SystemClock"]


class Clock(Protocol):
    """What the rooms may ask of time."""

    def now(self) -> datetime:
        """Return the wall clock, aware and in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds since an arbitrary start, never going back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds`."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """Return the wall clock, aware and in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds since an arbitrary start, never going back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds`."""
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Deadline:
    """When work has to be over."""

    clock: Clock
    at: float | None
    """By `clock.monotonic`; None: never."""

    @property
    def left(self) -> float | None:
        """Seconds until then, not below 0; None: no end."""
        return None if self.at is None else max(0.0, self.at - self.clock.monotonic())

    def within(self, seconds: float) -> float:
        """Return a time-out of so many seconds, or less where less is left."""
        left = self.left
        return seconds if left is None else min(seconds, left)
