"""Whose turn it is among the runs that wait for a worker."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from turnout.core.ids import RunId

__all__ = ["EVALUATIONS", "Claimable", "Pick", "Standing"]

EVALUATIONS: Final = "eval:"
"""How the projects of evaluations begin: whoever ordered such a run works on it, nobody else."""


@dataclass(frozen=True, slots=True)
class Claimable:
    """A run, as much of it as decides when its turn comes."""

    run_id: RunId
    project: str
    repository: str
    priority: int
    number: int
    """Grows with each run that is ordered."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What waits and what is worked on, at one moment."""

    queued: Sequence[Claimable]
    """Of each project some, the highest priority first, of equal ones the oldest."""
    running: Sequence[Claimable]
    served: Sequence[str]
    """Projects that were served before, the one that has waited longest first."""


Pick = Callable[[Standing], RunId | None]
"""Decides whose turn it is; None: nobody's, because of limits or because nothing waits."""
