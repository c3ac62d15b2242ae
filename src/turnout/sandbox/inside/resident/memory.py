"""Holding all processes inside to one amount of memory where no control group does."""

from __future__ import annotations

from turnout.sandbox.inside.resident.command import Command
from turnout.sandbox.inside.resident.processes import SIGKILL, Namespace, signal_each

__all__ = ["MemoryWatch"]

_LOOK_SECONDS = 0.25
"""Between two looks; what is taken meanwhile is taken."""

_FEW = 16 << 10
"""Kilobytes of shared memory that are not worth the time to ask for the part of each."""


class MemoryWatch:
    """Ends the largest process when all of them together hold more than they may.

    What counts is memory of their own and their part of what they share, but no files, which are
    programs and libraries in the first place.
    """

    def __init__(self, processes: Namespace, most: int) -> None:
        self._processes = processes
        self._most = most
        self.due = 0.0
        """When it wants to look again."""

    def look(self, now: float, commands: dict[int, Command]) -> None:
        """End the largest process where that is needed, and note whose it was."""
        if now < self.due:
            return
        self.due = now + _LOOK_SECONDS
        sizes = {pid: _size(pid) for pid in self._processes.rows()}
        if sum(sizes.values()) <= self._most:
            return
        largest = max(sizes, key=lambda pid: sizes[pid])
        for command in commands.values():
            family = self._processes.family(command.pid, command.mark)
            command.starved = command.starved or len(commands) == 1 or largest in family
        signal_each([largest], SIGKILL)


def _size(pid: int) -> int:
    """Return the bytes that count of one process."""
    resident = _kilobytes(f"/proc/{pid}/status")
    shared = resident.get(b"RssShmem", 0)
    if shared > _FEW:
        # Who hides from being looked at this closely is charged with all of it.
        shared = _kilobytes(f"/proc/{pid}/smaps_rollup").get(b"Pss_Shmem", shared)
    return (resident.get(b"RssAnon", 0) + shared) << 10


def _kilobytes(path: str) -> dict[bytes, int]:
    """Return what a file of the kernel's tells in kilobytes; nothing where it cannot be read."""
    try:
        with open(path, "rb") as file:
            lines = [line.split() for line in file]
    except OSError:
        return {}
    return {one[0][:-1]: int(one[1]) for one in lines if len(one) == 3 and one[2] == b"kB"}
