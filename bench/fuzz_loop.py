"""Does the agent's loop survive any model: random turns, seeded, thousands of them.

Each run of the loop gets turns that are broken in every way at hand, on files in memory or, with
`--sandbox bubblewrap`, in a sandbox of its own, where they also reach for what lies outside. It
must end in a named outcome, send no invalid history, touch nothing outside and leave a diff that
can be read; what does not is counted and its seed named.
"""

import argparse
import asyncio
import random
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Protocol, get_args

from children import end_on_term
from frame import Options, report
from turnout.core.ids import new_run_id
from turnout.core.runs import Outcome
from turnout.errors import SandboxError
from turnout.sandbox.base import BaseRef, BaseSpec, Limits, SandboxDriver
from turnout.sandbox.bubblewrap import BubblewrapDriver
from turnout.testing.hostile import ODD_ARGUMENTS, Canaries, Drilled, drill, hostile_arguments
from turnout.testing.repositories import TinyRepository
from turnout.testing.sandbox import ScriptedSandbox, result

FAULTS = ("escapes", "invalid_histories", "unnamed_outcomes", "unread_diffs", "tests_changed")
TEST = b"def test(): ...\n"
FILES: Mapping[str, str | bytes] = {"a.py": "x = 1\n", "test_a.py": TEST, "big": "y" * 30_000}
LIMITS = Limits(memory_bytes=256 << 20, pids=64, disk_bytes=64 << 20, inodes=5_000)
TURNS = 10_000
QUICK = {"memory": 600, "bubblewrap": 100}
LANES = 2
"""Runs at the same time."""
RUNS = 5
"""In one sandbox."""


class Ground(Protocol):
    """Where runs take place."""

    async def run(self, seed: int) -> Counter[str]:
        """Run the loop on odd turns; return its turns and what went wrong, counted."""
        ...


class InMemory:
    """Files in memory: only the loop and its tools are at work."""

    async def run(self, seed: int) -> Counter[str]:
        """Run on files of its own."""
        place = ScriptedSandbox(FILES)
        place.answer("long", result(b"z" * 9_000, code=1))
        drilled = await drill(random.Random(seed), place, ODD_ARGUMENTS)
        seen = counted(drilled)
        seen["tests_changed"] += place.files["test_a.py"].data != TEST
        return seen


class BehindWalls:
    """Real sandboxes, each for a few runs one after another, and canaries outside of them."""

    def __init__(self, driver: SandboxDriver, base: BaseRef, canaries: Canaries) -> None:
        self._driver = driver
        self._base = base
        self._canaries = canaries
        self._arguments = hostile_arguments(canaries)

    async def run(self, seed: int) -> Counter[str]:
        """Run a few times in one sandbox, and read its diff."""
        chance, seen = random.Random(seed), Counter[str]()
        sandbox = await self._driver.create(new_run_id(), self._base, LIMITS)
        try:
            for _ in range(RUNS):
                drilled = await drill(chance, sandbox, self._arguments, command_timeout=2.0)
                touched = self._canaries.touched(drilled.events)
                seen.update(counted(drilled))
                seen["escapes"] += len(touched)
                if touched:
                    print(f"seed {seed}: {', '.join(touched)}")
            await sandbox.kill_all()
            await sandbox.diff()
        except SandboxError as error:
            print(f"seed {seed}: {error}")
            seen["unread_diffs"] += 1
        finally:
            await sandbox.close()
        return seen


def counted(drilled: Drilled) -> Counter[str]:
    """Return how a run ended, its turns and what went wrong."""
    end = drilled.end
    seen = Counter(turns=drilled.turns, invalid_histories=drilled.invalid_histories)
    seen[f"ended_{end.outcome}" if end else "endless"] += 1
    seen["runs"] += 1
    seen["unnamed_outcomes"] += end is None or end.outcome not in get_args(Outcome)
    return seen


@contextmanager
def opened_folder() -> Iterator[Path]:
    """Yield a temporary folder through which the users of sandboxes may pass."""
    with tempfile.TemporaryDirectory(prefix="turnout-bench-") as folder:
        place = Path(folder)
        place.chmod(0o711)
        yield place


@asynccontextmanager
async def ground(kind: str) -> AsyncIterator[Ground]:
    """Yield where runs take place."""
    if kind == "memory":
        yield InMemory()
        return
    with opened_folder() as place:
        repository = TinyRepository(place / "repository", FILES)
        driver = BubblewrapDriver(place / "state")
        spec = BaseSpec(str(repository), repository.head, requirements=())
        async with Canaries(place / "canaries") as canaries:
            yield BehindWalls(driver, await driver.prepare(spec), canaries)
        await driver.close()


async def fuzz(where: Ground, most: int) -> Counter[str]:
    """Run until enough turns are taken, a few runs at a time."""
    seen: Counter[str] = Counter()

    async def lane(first: int) -> None:
        seed = first
        while seen["turns"] < most:
            found = await where.run(seed)
            if any(found[fault] for fault in FAULTS):
                print(f"seed {seed}: {dict(found)}")
            seen.update(found)
            seed += LANES

    async with asyncio.TaskGroup() as group:
        for first in range(1, LANES + 1):
            group.create_task(lane(first))
    return seen


def parsed(arguments: Sequence[str] | None = None) -> tuple[Options, str]:
    """Read the command line."""
    end_on_term()
    parser = argparse.ArgumentParser(description="Whether the agent's loop survives any model.")
    parser.add_argument("--quick", action="store_true", help="45 seconds at most; keep no result")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    parser.add_argument("--sandbox", choices=tuple(QUICK), default="memory", help="where runs work")
    found = parser.parse_args(arguments)
    return Options(quick=found.quick, json=found.json), found.sandbox


async def main() -> None:
    """Run until enough turns are taken; exit with status 1 where anything went wrong."""
    options, kind = parsed()
    started = time.perf_counter()
    async with ground(kind) as where:
        seen = await fuzz(where, options.pick(TURNS, QUICK[kind]))
    figures = {
        "turns": seen["turns"],
        "runs": seen["runs"],
        **{fault: seen[fault] for fault in FAULTS},
        "seconds": round(time.perf_counter() - started, 1),
    }
    ended = {name: number for name, number in seen.items() if name.startswith("end")}
    name = "fuzz_loop" if kind == "memory" else f"fuzz_loop_{kind}"
    report(name, options, figures, facts=ended)
    if any(seen[fault] for fault in FAULTS):
        raise SystemExit(1)


if __name__ == "__main__":
    asyncio.run(main())
