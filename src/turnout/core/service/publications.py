"""What becomes of a run's diff outside of the service, and of whoever asked for it at a forge."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from turnout.core.ids import RunId

__all__ = ["Publication", "PublicationState", "branch_of"]

PublicationState = Literal["due", "done", "failed"]
"""due: something is still to be done once the run has ended; failed: some of it cannot be done."""


@dataclass(frozen=True, slots=True)
class Publication:
    """How far a run's branch, its draft and the word to its forge are; each step is kept."""

    run_id: RunId
    project: str
    due_at: datetime
    """When it is looked at next."""
    state: PublicationState = "due"
    branch: str = ""
    """Empty until it was pushed, with `commit`."""
    commit: str = ""
    link: str = ""
    """Of the draft pull or merge request; empty where there is none."""
    detail: str = ""
    """Why the newest try came to nothing, or why nothing was pushed; for people."""
    tries: int = 0
    """That came to nothing, one after the other."""

    @property
    def over(self) -> bool:
        """Whether nothing more will be tried."""
        return self.state != "due"


def branch_of(run_id: RunId) -> str:
    """Return the branch of a run: nothing else is ever pushed."""
    return f"turnout/{run_id}"
