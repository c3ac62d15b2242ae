"""What does the gateway add to a model call, in time and in load.

A fixed answer is asked for directly, through a bare pass-through on the same stack, through the
gateway as `turnout gateway` serves it with everything on (key, tool rule, session caps, decision,
durable receipts), and through the peers that are installed. All are on loopback, each in a process
of its own; the upstream itself takes no time. Last, the gateway holds many slow streams at once.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import uvloop

from callers import Caller, Listener
from frame import Batch, Figures, Options, interleave, parse_options, percentile, report
from peers import Target, litellm, portkey
from servers import (
    BEAT,
    KEY,
    PLAIN,
    ROUTED,
    STREAMED,
    Place,
    gateway,
    pass_through,
    process,
    upstream,
)

WIDTH = 10
"""Callers at once, for load."""
STREAMS = 500
"""Streams at once; each sends an event every `servers.BEAT` seconds."""


def _latency(target: Target, times: int) -> Batch:
    async def batch() -> Sequence[float]:
        async with Caller.connected(target) as caller:
            await caller.call()
            return [await caller.call() for _ in range(times)]

    return batch


def _throughput(target: Target, each: int) -> Batch:
    """Return a batch whose one sample is the milliseconds per request under full load."""

    async def many(caller: Caller) -> None:
        for _ in range(each):
            await caller.call()

    async def batch() -> Sequence[float]:
        async with AsyncExitStack() as stack:
            callers = [
                await stack.enter_async_context(Caller.connected(target)) for _ in range(WIDTH)
            ]
            began = time.perf_counter()
            await asyncio.gather(*map(many, callers))
            return [(time.perf_counter() - began) * 1000 / (each * WIDTH)]

    return batch


async def _measure(targets: Mapping[str, Target], options: Options) -> Mapping[str, Figures]:
    times, each = options.pick(full=40, quick=15), options.pick(full=30, quick=5)
    alone = await interleave(
        {name: _latency(target, times) for name, target in targets.items()},
        rounds=options.pick(full=30, quick=6),
    )
    loaded = await interleave(
        {name: _throughput(target, each) for name, target in targets.items()},
        rounds=options.pick(full=7, quick=3),
    )

    def added(name: str, share: float) -> float:
        theirs, base = percentile(alone[name], share), percentile(alone["direct"], share)
        return round(theirs - base, 3)

    return {
        name: {
            "added_p50_ms": added(name, 0.5),
            "added_p99_ms": added(name, 0.99),
            "requests_per_s": round(1000 / percentile(loaded[name], 0.5)),
        }
        for name in targets
    }


async def _hold(target: Target) -> Figures:
    """Return how the gateway does with many streams under way at once."""
    async with AsyncExitStack() as stack:
        listeners = [
            await stack.enter_async_context(Listener.connected(target)) for _ in range(STREAMS)
        ]
        listening = []
        for number, listener in enumerate(listeners):
            listening.append(asyncio.create_task(listener.listen()))
            await asyncio.sleep(BEAT * 20 / STREAMS if number % 10 == 9 else 0)
        ended = await asyncio.gather(*listening)
    late = sorted(gap - BEAT * 1000 for gaps in ended for gap in gaps)
    return {
        "streams_held": sum(bool(gaps) for gaps in ended),
        "streams_late_p99_ms": round(late[int(0.99 * len(late))], 1),
        "streams_late_most_ms": round(late[-1], 1),
    }


def _rss_mb(pid: int) -> float:
    """Return the memory that a process holds, and the most that it has held."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    held = next(line for line in lines if line.startswith("VmHWM:"))
    return round(int(held.split()[1]) / 1024, 1)


def _disk_sync_ms() -> float:
    """Return how long this disk takes to make a page durable: each receipt waits for that."""
    samples = []
    with tempfile.TemporaryFile(buffering=0) as file:
        for _ in range(50):
            began = time.perf_counter()
            file.write(bytes(4096))
            os.fdatasync(file.fileno())
            samples.append((time.perf_counter() - began) * 1000)
    return round(percentile([samples], 0.5), 3)


async def main() -> None:
    """Start everybody, measure in turns, report."""
    options = parse_options(__doc__ or "")
    ours = {"authorization": f"Bearer {KEY}"}
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        port = (await enter(process(upstream))).port
        place: Place = await enter(process(gateway, port))
        bare: Place = await enter(process(pass_through, port))
        found: dict[str, Target | None] = {
            "direct": Target(port, PLAIN),
            "gateway": Target(place.port, ROUTED, ours),
            "pass_through": Target(bare.port, PLAIN),
            "litellm": await enter(litellm(port, PLAIN, KEY)),
            "portkey": await enter(portkey(port, PLAIN)),
        }
        targets = {name: target for name, target in found.items() if target is not None}
        figures = await _measure(targets, options)
        held = await _hold(Target(place.port, STREAMED, ours))
        rss = {"rss_mb": _rss_mb(place.pid)}
    report(
        "gateway_overhead",
        options,
        {**figures["gateway"], **held, **rss},
        peers={name: figures.get(name) for name in ("pass_through", "litellm", "portkey")},
        facts={
            "callers_under_load": WIDTH,
            "direct_requests_per_s": figures["direct"]["requests_per_s"],
            "disk_sync_p50_ms": _disk_sync_ms(),
        },
    )


if __name__ == "__main__":
    uvloop.run(main())
