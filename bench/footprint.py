"""What sandboxes that are alive weigh, for a bench."""

import asyncio
import ctypes
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path

from turnout.sandbox.base import Command, Sandbox

__all__ = ["adopt_orphans", "agent_mb", "alive_mb"]

_PR_SET_CHILD_SUBREAPER = 36
_RESIDENT = re.compile(r"^VmRSS:\s+(\d+) kB$", re.MULTILINE)
_PROPORTIONAL = re.compile(r"^Pss:\s+(\d+) kB$", re.MULTILINE)


def adopt_orphans() -> None:
    """Let what our processes leave behind fall to us, so that it is weighed as ours."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


async def agent_mb(sandbox: Sandbox) -> float | None:
    """Return the resident memory of process 1 inside, in MiB, what it shares included."""
    result = await sandbox.run(Command(("cat", "/proc/1/status")))
    found = _RESIDENT.search(result.stdout.decode())
    return round(int(found.group(1)) / 1024, 1) if found else None


async def alive_mb(starts: Sequence[Callable[[], Awaitable[Sandbox]]]) -> dict[str, float | None]:
    """Start sandboxes ten at a time, keep all of them, and weigh them together.

    `alive_N_mb` is the proportional memory of every process that came of it, helpers included, in
    MiB; None where it may not be read. `alive_N_peak_mb` is what their control groups counted at
    most, files and page tables included; None where nothing counts it.
    """
    before = _proportional()
    sandboxes: list[Sandbox] = []
    try:
        for first in range(0, len(starts), 10):
            batch = starts[first : first + 10]
            sandboxes += await asyncio.gather(*(start() for start in batch))
        after = _proportional()
        usages = await asyncio.gather(*(sandbox.usage() for sandbox in sandboxes))
    finally:
        await asyncio.gather(*(sandbox.close() for sandbox in sandboxes))
    peaks = [usage.peak_memory_bytes for usage in usages if usage.peak_memory_bytes is not None]
    grown = None if before is None or after is None else round((after - before) / 1024, 1)
    return {
        f"alive_{len(starts)}_mb": grown,
        f"alive_{len(starts)}_peak_mb": (
            round(sum(peaks) / (1 << 20), 1) if len(peaks) == len(starts) else None
        ),
    }


def _proportional() -> int | None:
    """Return the proportional memory of all our descendants in KiB; None where one hides it."""
    total = 0
    for pid in _descendants():
        try:
            found = _PROPORTIONAL.search(Path(f"/proc/{pid}/smaps_rollup").read_text())
        except PermissionError:
            return None
        except OSError:
            continue
        total += int(found.group(1)) if found else 0
    return total


def _descendants() -> set[int]:
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {os.getpid()}
