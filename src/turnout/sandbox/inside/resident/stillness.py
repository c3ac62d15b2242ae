"""Holding everything inside to standing still while it is stopped."""

from __future__ import annotations

from turnout.sandbox.inside.resident.command import Command
from turnout.sandbox.inside.resident.processes import SIGKILL, Namespace, signal_each

__all__ = ["Stillness"]

_STILL_SECONDS = 2.0
_STILL_TICKS = 2
"""Ticks that a process may still use: it stops at the end of a system call."""


class Stillness:
    """Ends what goes on though it was stopped: a timer of a process may continue it.

    No process can refuse to be stopped, and nobody here can be kept from being continued.
    """

    def __init__(self, processes: Namespace) -> None:
        self._processes = processes
        self._spent: dict[int, int] = {}
        self.due = 0.0
        """When it wants to look again."""

    def begin(self, now: float) -> None:
        """Note what was used until now, when everything is stopped."""
        self._spent = self._processes.spent()
        self.due = now + _STILL_SECONDS

    def look(self, now: float, commands: dict[int, Command]) -> None:
        """End what has used more, or was not there; commands that began since then may go on."""
        if now < self.due:
            return
        self.due = now + _STILL_SECONDS
        spent = self._processes.spent()
        going = {
            pid for pid, ticks in spent.items() if ticks > self._spent.get(pid, 0) + _STILL_TICKS
        }
        going |= spent.keys() - self._spent.keys()
        for command in commands.values():
            if going and not command.frozen_at:
                going -= {*self._processes.family(command.pid, command.mark)}
        signal_each(sorted(going), SIGKILL)
