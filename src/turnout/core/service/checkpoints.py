"""What a workspace held at some moment, as machines hand it on."""

from dataclasses import dataclass
from pathlib import Path

from turnout.core.ids import RunId

__all__ = ["CheckpointOptions", "Part"]


@dataclass(frozen=True, slots=True)
class Part:
    """One layer of a run, and on what it lies."""

    run_id: RunId
    epoch: int
    """Of the segment that made it: whoever was fenced off drops nothing of later ones."""
    key: str
    likeness: str
    """The same for all bases on which the layer lies, on whichever machine."""


@dataclass(frozen=True, slots=True)
class CheckpointOptions:
    """Where checkpoints are kept beside the machine that made them."""

    database: bool | None = None
    """Whether in the database; None: where that is one which several machines may share."""
    folder: Path | None = None
    """In a folder that all machines have mounted, in place of the database."""
    most_bytes: int = 64 << 20
    """Of one layer; a larger one stays with its machine."""
