"""What the sandboxes of a segment took, read from each before it is closed."""

import asyncio
from dataclasses import dataclass, replace
from typing import Final

from turnout.core.events import ResourcesUsed
from turnout.core.spend.rates import MachineRates
from turnout.errors import SandboxError
from turnout.runs.summary import sum_of
from turnout.sandbox.base import Sandbox, SandboxUsage

__all__ = ["Meter"]

_LONGEST: Final = 2.0
"""Seconds for reading what one sandbox took; closing it waits for that."""
_MIB: Final = 1 << 20


@dataclass(slots=True)
class Meter:
    """Adds up; a sandbox that died before it was read is left out."""

    total: ResourcesUsed | None = None

    async def read(self, sandbox: Sandbox) -> None:
        """Count a sandbox that is about to be closed."""
        try:
            async with asyncio.timeout(_LONGEST):
                used = await sandbox.usage()
        except (SandboxError, TimeoutError):
            return
        self.total = sum_of(self.total, _resources(used))

    def take(self, rates: MachineRates) -> tuple[ResourcesUsed, ...]:
        """Return what was counted since the last time, with its price; nothing: no sandbox was."""
        total, self.total = self.total, None
        if total is None:
            return ()
        cost = rates.cost(total.cpu_seconds, total.memory_mib_seconds, total.wall_seconds)
        return (replace(total, cost=cost),)


def _resources(used: SandboxUsage) -> ResourcesUsed:
    peak = used.peak_memory_bytes
    return ResourcesUsed(
        used.cpu_seconds,
        peak,
        used.disk_bytes,
        used.wall_seconds,
        used.frozen_seconds,
        None if peak is None else peak / _MIB * used.wall_seconds,
    )
