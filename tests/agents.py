"""Resident agents outside of any walls, as children of a test."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from turnout.sandbox.base import Command, CommandResult, Exit, Limits
from turnout.sandbox.channel import Channel
from turnout.sandbox.inside import wire
from turnout.sandbox.inside.handover import agent_words, resident_source

__all__ = ["LIMITS", "frame", "over_pipes", "ran"]

LIMITS = Limits(memory_bytes=1 << 30)


def frame(kind: int, call_id: int, payload: bytes = b"") -> bytes:
    """Return the bytes of one frame."""
    return wire.HEADER.pack(len(payload) + 5, kind, call_id) + payload


@asynccontextmanager
async def over_pipes(
    root: Path, *more: str, limits: Limits = LIMITS, pass_fds: tuple[int, ...] = ()
) -> AsyncIterator[tuple[Channel, asyncio.subprocess.Process]]:
    """Start an agent on its standard input and output, as containers do; `more` are arguments."""
    words = agent_words((0, 1), limits, root=str(root), alone=False)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-ISE", "-c", resident_source(), *words, *more),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        pass_fds=pass_fds,
        env={},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    channel = Channel(process.stdout, process.stdin, lambda: None)
    try:
        await channel.wait_ready(20)
        yield channel, process
    finally:
        channel.end("the test is over")
        await channel.closed()
        async with asyncio.timeout(20):
            await process.wait()


async def ran(channel: Channel, shell: str, *, timeout: float = 20) -> CommandResult:
    """Run a line to its end."""
    parts: dict[str, bytes] = {"stdout": b"", "stderr": b""}
    async for item in channel.exec(Command(shell=shell, timeout=timeout, cwd=".")):
        if isinstance(item, Exit):
            return CommandResult(item, parts["stdout"], parts["stderr"])
        parts[item.stream] += item.data
    raise AssertionError("the command had no end")
