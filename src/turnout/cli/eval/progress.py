"""How far mining is: what is tried, what became of it, and how long the rest may take."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from turnout.cli.terminal import plural
from turnout.core.clock import Clock
from turnout.evals.mine.candidates import Candidate
from turnout.evals.mine.mining import Told
from turnout.evals.mine.output import MinedFile
from turnout.evals.mine.reasons import REASONS, Dropped

__all__ = ["Progress"]

_EVERY: Final = 30.0
"""Seconds between two lines that say how far it is, whether or not anything has happened."""
_SILENT: Final = frozenset(
    {"not_a_fix", "no_source", "no_test", "odd_files", "many_files", "too_large", "no_code"}
)
"""Reasons that most commits have: they are counted and not told one by one."""
_SURE: Final = 0.02
"""Part of the whole from which on what is left is worth telling."""


@dataclass(slots=True)
class Progress:
    """Says it in plain lines, so that a file shows the same as a terminal."""

    out: MinedFile
    say: Callable[[str], None]
    clock: Clock
    wanted: int | None = None
    """Rows in the end; None: all there are."""
    commits: int = 0
    """That are to be looked at, those that were decided before aside; 0: unknown."""
    looked: int = 0
    tried: int = 0
    """Candidates that were begun."""
    under_way: int = 0
    _begun: float = field(init=False)
    _rows: int = field(init=False)
    """There were at the beginning."""

    def __post_init__(self) -> None:
        self._begun = self.clock.monotonic()
        self._rows = self.out.kept

    def began(self, candidate: Candidate) -> None:
        """Say which candidate is tried now."""
        self.tried += 1
        self.under_way += 1
        self.say(f"trying {candidate.commit.name[:10]} {candidate.title}")

    def ended(self) -> None:
        """Count a candidate that is tried no more."""
        self.under_way -= 1

    def tell(self, told: Told) -> None:
        """Say how a commit was decided; of what most of them are, only the number."""
        self.looked += 1
        line = f"{told.commit[:10]} {told.title}"
        if not isinstance(told.verdict, Dropped):
            self.say(f"kept {line} (lines: {told.verdict}; {plural(self.out.kept, 'row')})")
        elif told.verdict.reason not in _SILENT:
            detail = f" ({told.verdict.detail})" if told.verdict.detail else ""
            self.say(f"left {line}: {REASONS[told.verdict.reason]}{detail}")

    def line(self) -> str:
        """Return how far it is."""
        of = f" of {self.commits:,}" if self.commits else ""
        told = (
            f"{self.looked:,}{of} commits looked at, {plural(self.tried, 'candidate')} tried "
            f"({self.under_way} under way), {plural(self.out.kept, 'row')}"
        )
        left = self._left()
        return told if left is None else f"{told}; about {_duration(left)} left"

    async def go_on(self) -> None:
        """Say how far it is now and then, until it is cancelled."""
        while True:
            await self.clock.sleep(_EVERY)
            self.say(self.line())

    def _left(self) -> float | None:
        """Return the seconds that are left at the pace so far; None before that can be told."""
        parts = [self.looked / self.commits] if self.commits else []
        if self.wanted is not None and self.wanted > self._rows:
            parts.append((self.out.kept - self._rows) / (self.wanted - self._rows))
        part = min(1.0, max(parts, default=0.0))
        passed = self.clock.monotonic() - self._begun
        return None if part < _SURE else passed * (1 - part) / part


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return "1 min"
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.0f} h"
