"""How long does a sandbox take to be there, and how long does a command in it take.

The same `/bin/true` runs in a sandbox that is there already, in a bare bubblewrap of its own with
the same kind of view, and as a plain process of this machine: what the last one takes is the floor.
"""

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from frame import Batch, Figures, Options, interleave, parse_options, percentile, report
from turnout.core.ids import RunId
from turnout.sandbox.base import Command, Limits
from turnout.sandbox.bubblewrap import BubblewrapDriver, BubblewrapSandbox

RUN = RunId("run-00000000be9c")
LIMITS = Limits(memory_bytes=512 << 20, disk_bytes=256 << 20)
TRUE = Command(("/bin/true",))
BARE = (
    *("--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin"),
    *("--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"),
    *("--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"),
    *("--unshare-all", "--die-with-parent", "/bin/true"),
)


def timed_here(program: str, *arguments: str, count: int) -> Batch:
    """Return a batch that runs a plain process some times, in milliseconds each."""

    async def batch() -> Sequence[float]:
        samples = []
        for _ in range(count):
            begin = time.perf_counter()
            spawn(program, *arguments)
            samples.append((time.perf_counter() - begin) * 1000)
        return samples

    return batch


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


def spawn(program: str, *arguments: str) -> None:
    """Run a plain process to its end, as cheaply as this machine can."""
    pid = os.posix_spawn(program, [program, *arguments], {"PATH": "/usr/bin:/bin"})
    os.waitpid(pid, 0)


async def measure(options: Options) -> None:
    """Measure all cases in turns and report them."""
    bwrap = shutil.which("bwrap")
    async with AsyncExitStack() as stack:
        state = stack.enter_context(tempfile.TemporaryDirectory())
        driver = BubblewrapDriver(Path(state))
        sandbox = await driver.start_bare(RUN, (), LIMITS)
        stack.push_async_callback(sandbox.close)
        await sandbox.write("file", b"x" * 5000)
        opened: list[BubblewrapSandbox] = []

        async def create() -> None:
            opened.append(await driver.start_bare(RUN, (), LIMITS))
            await opened[-1].run(TRUE)

        async def close() -> None:
            await opened.pop().close()

        async def create_batch() -> Sequence[float]:
            samples = []
            for _ in range(options.pick(10, 5)):
                samples += await timed(create, 1)()
                await close()
            return samples

        cases = {
            "create": create_batch,
            "exec": timed(lambda: sandbox.run(TRUE), options.pick(100, 30)),
            "read": timed(lambda: sandbox.read("file"), options.pick(100, 30)),
            "posix_spawn": timed_here("/bin/true", count=options.pick(100, 30)),
        }
        if bwrap is not None:
            cases["bare_bwrap"] = timed_here(bwrap, *BARE, count=options.pick(20, 10))
        samples = await interleave(cases, rounds=options.pick(10, 4))

    def figures(case: str) -> dict[str, float]:
        return {
            "exec_p50_ms": round(percentile(samples[case], 0.5), 3),
            "exec_p99_ms": round(percentile(samples[case], 0.99), 3),
        }

    ours: Figures = {
        "create_to_first_command_p50_ms": round(percentile(samples["create"], 0.5), 3),
        "create_to_first_command_p99_ms": round(percentile(samples["create"], 0.99), 3),
        **figures("exec"),
        "read_p50_ms": round(percentile(samples["read"], 0.5), 3),
    }
    peers = {
        "posix_spawn": figures("posix_spawn"),
        "bare_bwrap": figures("bare_bwrap") if bwrap is not None else None,
    }
    report("sandbox", options, ours, peers=peers, facts={"walls": sandbox.isolation})


if __name__ == "__main__":
    question = (__doc__ or "").partition("\n")[0]
    asyncio.run(measure(parse_options(question)))
