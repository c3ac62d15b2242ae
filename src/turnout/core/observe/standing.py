"""How the service stands as a whole, at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from turnout.core.runs import RunState

__all__ = ["ServiceStanding", "Watching"]


@dataclass(frozen=True, slots=True)
class ServiceStanding:
    """What has not ended, over all processes."""

    runs: Mapping[RunState, int]
    """By state; those that have ended are left out."""
    oldest_queued: float
    """Seconds since the oldest of the queued runs was ordered; 0 where none is queued."""
    workers: int
    """Those that gave a sign of life of late."""


class Watching(Protocol):
    """Whoever knows how the service stands."""

    async def standing(self, now: datetime, *, stale: float) -> ServiceStanding:
        """Return how it stands; workers silent for `stale` seconds do not count."""
        ...
