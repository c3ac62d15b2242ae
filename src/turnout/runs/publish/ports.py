"""What publishing needs from outside; `wiring` hands in what satisfies it."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Protocol

from turnout.core.govern.happenings import Happening
from turnout.core.ids import RunId
from turnout.core.service.publications import Publication
from turnout.runs.publish.push import Change

__all__ = ["PublicationStore", "Push"]

Push = Callable[[str, RunId, Change], Awaitable[str]]
"""Pushes a run's change to a repository of the service (by name), and returns the commit.

`DeliveryError` where it cannot be done.
"""


class PublicationStore(Protocol):
    """Publications by run; those of runs that have not ended wait."""

    async def claim(self, now: datetime, *, limit: int, seconds: float) -> Sequence[Publication]:
        """Return what is due of runs that have ended, for so many seconds nobody else's."""
        ...

    async def save(self, publication: Publication, told: Happening | None = None) -> None:
        """Keep how far one is, and what is told of it, in one; one that is over stays as it is."""
        ...
