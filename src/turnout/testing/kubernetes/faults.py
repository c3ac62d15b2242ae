"""What can go wrong in a cluster, on demand."""

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Faults", "Refusal", "Start"]

Start = Literal["runs", "unschedulable", "no_image", "no_profile", "ends"]
"""What becomes of a pod: it runs, no node takes it, its image cannot be had, its filter is on no
node, or its main process ends at once."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """One answer in place of the true one."""

    status: int
    verb: str = ""
    """Any, where empty."""
    path: str = ""
    """Expression that is searched in the path."""
    reason: str = "InternalError"
    message: str = "it was so ordered"
    headers: Mapping[str, str] = field(default_factory=dict)
    done: bool = False
    """The request is carried out all the same: its answer was lost on the way."""


@dataclass(slots=True)
class Faults:
    """What goes wrong from now on."""

    start: Start = "runs"
    refusals: deque[Refusal] = field(default_factory=deque)
    """The first that fits a request answers it, once."""
    forbidden: set[tuple[str, str]] = field(default_factory=set)
    """Verb and resource of what the account may not do, such as `create` and `pods/exec`."""
    unenforced: bool = False
    """Network policies are written down and not held."""
    cut_after_bytes: int | None = None
    """Every stream out of a pod is torn after so many bytes."""

    def refuse(self, status: int, *, verb: str = "", path: str = "", times: int = 1) -> None:
        """Let requests be answered by a status."""
        self.refusals.extend([Refusal(status, verb, path)] * times)

    def take(self, verb: str, path: str) -> Refusal | None:
        """Return the refusal of a request, which is then used up."""
        for refusal in self.refusals:
            if refusal.verb in ("", verb) and re.search(refusal.path, path):
                self.refusals.remove(refusal)
                return refusal
        return None
