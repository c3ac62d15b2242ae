"""How long does a sandbox take to be there, and how long does a command in it take.

From asking for a sandbox until its first command has ended, on a small repository and on one of
20,000 files; then the same `/bin/true` in a sandbox that is there, as a plain process of this
machine (the floor), in a bare bubblewrap, in a container of ours and by Podman itself. At last:
twenty sandboxes at once, and what a hundred that are alive weigh.
"""

import asyncio
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from containers import Engine, Podman, find_podman
from footprint import adopt_orphans, agent_mb, alive_mb
from frame import Batch, Figures, Options, interleave, parse_options, percentile, report
from turnout.core.ids import new_run_id
from turnout.sandbox.base import BaseRef, BaseSpec, Command, Limits, Sandbox, SandboxDriver
from turnout.sandbox.bubblewrap import BubblewrapDriver
from turnout.testing.repositories import TinyRepository

LIMITS = Limits(memory_bytes=512 << 20, disk_bytes=256 << 20)
TRUE = Command(("/bin/true",))
FILES = 20_000
TOGETHER = 20
ALIVE = 100
BARE = (
    *("--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin"),
    *("--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"),
    *("--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"),
    *("--unshare-all", "--die-with-parent", "/bin/true"),
)

Rounds = Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class Maker:
    """Starts sandboxes of one kind on one base."""

    driver: SandboxDriver
    base: BaseRef

    async def __call__(self) -> Sandbox:
        """Start one and run a command in it."""
        sandbox = await self.driver.create(new_run_id(), self.base, LIMITS)
        await sandbox.run(TRUE)
        return sandbox


def timed(action: Callable[[], Awaitable[object]], count: int) -> Batch:
    """Return a batch that does `action` some times, in milliseconds each."""

    async def batch() -> Sequence[float]:
        samples = []
        for _ in range(count):
            begin = time.perf_counter()
            await action()
            samples.append((time.perf_counter() - begin) * 1000)
        return samples

    return batch


def started(
    start: Callable[[], Awaitable[Sandbox]],
    count: int,
    *,
    before: Callable[[], Awaitable[None]] | None = None,
) -> Batch:
    """Return a batch that starts sandboxes one after another; ending them is not counted."""

    async def batch() -> Sequence[float]:
        samples = []
        for _ in range(count):
            if before is not None:
                await before()
            begin = time.perf_counter()
            sandbox = await start()
            samples.append((time.perf_counter() - begin) * 1000)
            await sandbox.close()
        return samples

    return batch


def together(start: Callable[[], Awaitable[Sandbox]], count: int) -> Batch:
    """Return a batch that starts sandboxes at once: one sample, until the last one has answered."""

    async def batch() -> Sequence[float]:
        begin = time.perf_counter()
        sandboxes = await asyncio.gather(*(start() for _ in range(count)))
        took = (time.perf_counter() - begin) * 1000
        await asyncio.gather(*(sandbox.close() for sandbox in sandboxes))
        return [took]

    return batch


def spawned(program: str, *arguments: str, count: int) -> Batch:
    """Return a batch that runs a plain process as cheaply as this machine can."""

    async def batch() -> Sequence[float]:
        samples = []
        for _ in range(count):
            begin = time.perf_counter()
            spawn(program, *arguments)
            samples.append((time.perf_counter() - begin) * 1000)
        return samples

    return batch


def spawn(program: str, *arguments: str) -> None:
    """Run a plain process to its end."""
    pid = os.posix_spawn(program, [program, *arguments], {"PATH": "/usr/bin:/bin"})
    os.waitpid(pid, 0)


def large_repository(folder: Path) -> TinyRepository:
    """Make a repository of many files, none of which lies in its own work tree."""
    made = TinyRepository(folder)
    lines = [b"commit refs/heads/main\ncommitter A <a@b> 1700000000 +0000\ndata 0\n"]
    for number in range(FILES):
        data = b"%d\n" % number * 50
        name = b"d%d/f%d.txt" % (number % 200, number)
        lines.append(b"M 644 inline %s\ndata %d\n%s\n" % (name, len(data), data))
    git = ["git", "-C", str(folder), "fast-import", "--quiet"]
    subprocess.run(git, input=b"".join(lines), check=True, timeout=60)
    return made


async def bare(driver: BubblewrapDriver) -> Sandbox:
    """Start a sandbox without a base beneath its workspace, and run a command in it."""
    sandbox = await driver.start_bare(new_run_id(), (), LIMITS)
    await sandbox.run(TRUE)
    return sandbox


async def prepared(driver: SandboxDriver, repository: TinyRepository) -> Maker:
    """Prepare a repository for one driver."""
    spec = BaseSpec(str(repository), repository.head, requirements=())
    return Maker(driver, await driver.prepare(spec))


def p50(rounds: Rounds) -> float:
    """Return the median in milliseconds."""
    return round(percentile(rounds, 0.5), 3)


def p99(rounds: Rounds) -> float:
    """Return all but the slowest hundredth in milliseconds."""
    return round(percentile(rounds, 0.99), 3)


def added(larger: Rounds, smaller: Rounds) -> float:
    """Return what one takes more than another, round by round, in milliseconds."""
    pairs = zip(larger, smaller, strict=True)
    return round(median(median(more) - median(less) for more, less in pairs), 3)


async def measure(options: Options) -> None:
    """Measure all cases in turns and report them."""
    bwrap = shutil.which("bwrap")
    adopt_orphans()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        driver = BubblewrapDriver(folder / "state")
        stack.push_async_callback(driver.close)
        tiny = TinyRepository(folder / "small", {"a.txt": "a\n", "src/m.py": "x = 1\n"})
        small = await prepared(driver, tiny)
        large = await prepared(driver, await asyncio.to_thread(large_repository, folder / "large"))
        sandbox = await small()
        stack.push_async_callback(sandbox.close)
        await sandbox.write("file", b"x" * 5000)
        cases = {
            "create": started(small, options.pick(10, 4)),
            "create_large": started(large, options.pick(10, 4)),
            "create_bare": started(lambda: bare(driver), options.pick(10, 4)),
            "exec": timed(lambda: sandbox.run(TRUE), options.pick(100, 30)),
            "read": timed(lambda: sandbox.read("file"), options.pick(100, 30)),
            "together": together(small, TOGETHER),
            "posix_spawn": spawned("/bin/true", count=options.pick(100, 30)),
        }
        if bwrap is not None:
            cases["bare_bwrap"] = spawned(bwrap, *BARE, count=options.pick(20, 10))
        engine = await find_podman(folder / "state", stack)
        if engine is not None:
            cases |= await container_cases(engine, tiny, stack, options)
        samples = await interleave(cases, rounds=options.pick(10, 3))
        weights = {
            "agent_mb": await agent_mb(sandbox),
            **await alive_mb([small] * ALIVE),
        }
    ours: Figures = {**own_figures(samples), **weights}
    peers = peer_figures(samples, bwrap is not None)
    report("sandbox", options, ours, peers=peers, facts={"walls": sandbox.isolation})


async def container_cases(
    engine: Engine, tiny: TinyRepository, stack: AsyncExitStack, options: Options
) -> dict[str, Batch]:
    """Return the cases that start containers, ours and the engine's own; each takes long."""
    cold, warm = await prepared(engine.cold, tiny), await prepared(engine.warm, tiny)
    container = await cold()
    stack.push_async_callback(container.close)
    podman = Podman(engine)
    stack.push_async_callback(podman.close)
    await podman.begin()

    async def ready() -> None:
        await engine.warm.warm_up(warm.base, LIMITS)

    return {
        "container_cold": started(cold, options.pick(3, 1)),
        "container_warm": started(warm, options.pick(3, 1), before=ready),
        "container_exec": timed(lambda: container.run(TRUE), options.pick(100, 30)),
        "podman_run": timed(podman.run, options.pick(3, 1)),
        "podman_exec": timed(podman.exec, options.pick(5, 2)),
    }


def own_figures(samples: Mapping[str, Rounds]) -> Figures:
    """Return what we measured of ourselves, the two that matter most first."""

    def of(case: str) -> float | None:
        return p50(samples[case]) if case in samples else None

    return {
        "create_to_first_command_p50_ms": of("create"),
        "exec_p50_ms": of("exec"),
        "create_to_first_command_p99_ms": p99(samples["create"]),
        "exec_p99_ms": p99(samples["exec"]),
        "read_p50_ms": of("read"),
        f"create_{FILES}_files_p50_ms": of("create_large"),
        f"workspace_{FILES}_files_p50_ms": added(samples["create_large"], samples["create_bare"]),
        f"together_{TOGETHER}_p50_ms": of("together"),
        "container_cold_p50_ms": of("container_cold"),
        "container_warm_p50_ms": of("container_warm"),
        "container_exec_p50_ms": of("container_exec"),
    }


def peer_figures(samples: Mapping[str, Rounds], has_bwrap: bool) -> dict[str, Figures | None]:
    """Return the same of others, under our names for it; None for one that is not installed."""

    def of(case: str) -> Figures:
        return {"exec_p50_ms": p50(samples[case]), "exec_p99_ms": p99(samples[case])}

    podman: Figures | None = None
    if "podman_run" in samples:
        run = {"create_to_first_command_p50_ms": p50(samples["podman_run"])}
        podman = {**run, **of("podman_exec")}
    bwrap: Figures | None = None
    if has_bwrap:
        start = {"create_to_first_command_p50_ms": p50(samples["bare_bwrap"])}
        bwrap = {**start, **of("bare_bwrap")}
    return {"posix_spawn": of("posix_spawn"), "bare_bwrap": bwrap, "podman": podman}


if __name__ == "__main__":
    question = (__doc__ or "").partition("\n")[0]
    asyncio.run(measure(parse_options(question)))
