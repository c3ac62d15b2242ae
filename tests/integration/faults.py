"""What tests of faults share: a bench to start sandboxes on, and looking for what they left."""

import asyncio
import ctypes
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from turnout.core.ids import new_run_id
from turnout.errors import SandboxUnavailableError
from turnout.sandbox.base import BaseRef, BaseSpec, Limits, Sandbox, SandboxDriver
from turnout.testing.repositories import TinyRepository

__all__ = [
    "Bench",
    "Traces",
    "adopting",
    "descendants",
    "groups",
    "mounted",
    "registered",
    "resident_bytes",
    "settled",
    "spread",
    "three_hundred_files",
]

_LIMITS = Limits()
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Bench:
    """A driver, a base to start sandboxes on, and the state folder that they have to themselves."""

    driver: SandboxDriver
    base: BaseRef
    state: Path

    @classmethod
    async def made(cls, driver: SandboxDriver, repository: TinyRepository, state: Path) -> "Bench":
        """Prepare a repository; skips where there are no sandboxes."""
        spec = BaseSpec(str(repository), repository.head, requirements=())
        try:
            return cls(driver, await driver.prepare(spec), state)
        except SandboxUnavailableError as error:
            pytest.skip(str(error))

    async def create(self, limits: Limits = _LIMITS) -> Sandbox:
        """Start a sandbox."""
        return await self.driver.create(new_run_id(), self.base, limits)

    @asynccontextmanager
    async def opened(self, limits: Limits = _LIMITS) -> AsyncIterator[Sandbox]:
        """Start a sandbox and end it."""
        sandbox = await self.create(limits)
        try:
            yield sandbox
        finally:
            await sandbox.close()


def three_hundred_files(folder: Path) -> TinyRepository:
    """Make a repository that takes a moment to be laid out."""
    return TinyRepository(folder, {f"d{n % 10}/f{n}.txt": f"{n}\n" for n in range(300)})


def descriptors() -> int:
    """Return how many descriptors this process has."""
    return len(list(Path("/proc/self/fd").iterdir()))


@contextmanager
def adopting() -> Iterator[None]:
    """Let orphans of what this process starts fall to it, so that `descendants` sees them."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def descendants() -> set[str]:
    """Return the command lines of all processes that came of this one and have not ended."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
            if state not in "ZX":
                parents[int(path.parent.name)] = int(parent)
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    lines = set()
    for pid in found - {os.getpid()}:
        with suppress(OSError):
            lines.add(f"{pid} {Path(f'/proc/{pid}/cmdline').read_text(errors='replace')}")
    return lines


def mounted(folder: Path) -> list[str]:
    """Return the mounts of the host that have to do with a folder."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in lines if str(folder) in line or "turnout" in line]


def registered(state: Path) -> set[str]:
    """Return the names of the sandboxes that a state folder knows."""
    return {path.stem for path in (state / "sandboxes").glob("turnout-*")}


@dataclass(frozen=True)
class Traces:
    """What sandboxes leave on a machine while they live."""

    descriptors: int
    mounts: int
    processes: frozenset[str]
    files: frozenset[Path]

    @classmethod
    def seen(cls, state: Path) -> "Traces":
        """Look at this process and at the state folder."""
        files = frozenset(path for path in state.glob("*/*") if path.parent.name != "locks")
        return cls(descriptors(), len(mounted(state)), frozenset(descendants()), files)

    def no_more_than(self, before: "Traces") -> bool:
        """Whether nothing came; what ran earlier may have gone meanwhile."""
        return (
            self.descriptors <= before.descriptors
            and self.mounts <= before.mounts
            and self.processes <= before.processes
            and self.files <= before.files
        )


async def settled(before: Traces, state: Path) -> None:
    """Wait until nothing but what was there before is left; a close goes on when its caller left.

    Fails with what is there where that takes seconds.
    """
    for _ in range(2_000):
        if Traces.seen(state).no_more_than(before):
            return
        await asyncio.sleep(0.01)
    left = Traces.seen(state)
    assert left.no_more_than(before), (left, before)


def groups(state: Path) -> set[Path]:
    """Return the control groups of the sandboxes that a state folder knows."""
    found: set[Path] = set()
    for path in (state / "sandboxes").glob("turnout-*"):
        with suppress(OSError, ValueError):
            found.update(map(Path, json.loads(path.read_bytes())["cgroups"]))
    return found


def resident_bytes() -> int:
    """Return the resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def spread(action: Callable[[], Awaitable[object]], steps: int) -> list[float]:
    """Return moments that lie evenly in the time that an action takes."""
    begin = time.monotonic()
    await action()
    took = time.monotonic() - begin
    return [took * step / steps for step in range(steps + 1)]
