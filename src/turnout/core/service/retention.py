"""For how long what is over is kept."""

from dataclasses import dataclass
from datetime import timedelta

__all__ = ["Forgotten", "Retention"]


@dataclass(frozen=True, slots=True)
class Retention:
    """Ages after which things go; None: never."""

    runs: timedelta | None = None
    """Since a run ended; its record goes as a whole, with its order and what hangs on it."""
    receipts: timedelta | None = None
    """Of model calls; usage and reconciling see no further back."""
    events: timedelta | None = None
    """What happened, once every webhook was told of it."""
    audit: timedelta | None = None
    conversations: timedelta = timedelta(days=30)
    """Answers that a client may refer to by their id."""
    workspaces: timedelta = timedelta(days=30)
    """Since their last use: what workspaces were made of, and checkpoints of one machine."""

    @property
    def forgets(self) -> bool:
        """Whether anything but conversations goes."""
        return any((self.runs, self.receipts, self.events, self.audit))


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How many of each went."""

    runs: int = 0
    receipts: int = 0
    events: int = 0
    audit: int = 0

    def __bool__(self) -> bool:
        return any((self.runs, self.receipts, self.events, self.audit))
