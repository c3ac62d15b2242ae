"""A sandbox in a pod."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace

from turnout.core.ids import RunId
from turnout.core.runs import Patch
from turnout.errors import SandboxDiedError, SandboxError
from turnout.sandbox.base import BASE_ENV, Command, LayerRef, Output, Sandbox, SandboxUsage
from turnout.sandbox.channel import Channel
from turnout.sandbox.resident_sandbox import Fittings, ResidentSandbox

__all__ = ["PodSandbox", "Workspace"]

_ACCOUNTS = """
cd /sys/fs/cgroup && {
    if read -r _ used < cpu.stat; then echo "$used"
    elif read -r used < cpuacct/cpuacct.usage; then echo "$((used / 1000))"
    else echo -; fi
    cat memory.peak || cat memory/memory.max_usage_in_bytes || echo -
} 2>/dev/null
"""
"""What the container's control group has counted: microseconds, then bytes."""
_ACCOUNTS_SECONDS = 10.0
_MOST_DIGITS = 18


@dataclass(frozen=True, slots=True)
class Workspace:
    """What a sandbox can do because of the base that it began on."""

    diff: Callable[[Sandbox], Awaitable[Patch]]
    snapshot: Callable[[Sandbox], Awaitable[LayerRef]]
    start: Callable[[RunId, LayerRef], Awaitable[Sandbox]]
    """Start another one on the same base and a layer."""


class PodSandbox(ResidentSandbox):
    """A sandbox whose walls are those of a pod."""

    def __init__(
        self,
        fittings: Fittings,
        channel: Channel,
        pod: str,
        undo: AsyncExitStack,
    ) -> None:
        """`undo` ends all that was made for it, the pod among it."""
        super().__init__(fittings, channel)
        self.pod = pod
        """Name of its pod."""
        self._undo = undo
        self._before_close: Callable[[Sandbox], Awaitable[None]] | None = None
        self._workspace: Workspace | None = None
        self._closing: asyncio.Task[None] | None = None

    def stand_on(self, workspace: Workspace) -> None:
        """Let it compare and copy its workspace; told once, when that is laid out."""
        self._workspace = workspace

    def when_closing(self, fetch: Callable[[Sandbox], Awaitable[None]]) -> None:
        """Let something be fetched from it before it is closed, if it lives until then."""
        self._before_close = fetch

    async def diff(self) -> Patch:
        """Compare the workspace with its base commit, by a sandbox that the run never touched."""
        return await self._based().diff(self)

    async def snapshot(self) -> LayerRef:
        """Keep workspace and environment as a layer; everything else is stopped meanwhile."""
        return await self._based().snapshot(self)

    async def fork(self, run_id: RunId) -> Sandbox:
        """Start another sandbox with the same workspace and environment."""
        return await self._based().start(run_id, await self.snapshot())

    async def usage(self) -> SandboxUsage:
        """Return what the control group of the container has counted, where it can be read.

        Nothing is thawed for it: what is started now is not frozen.
        """
        env = {"PATH": BASE_ENV["PATH"].partition(":")[2]}
        command = Command(shell=_ACCOUNTS, cwd="/", env=env, timeout=_ACCOUNTS_SECONDS)
        printed = bytearray()
        async with self._lifetime.unchanged():
            async for item in self._channel.exec(command):
                if isinstance(item, Output) and item.stream == "stdout":
                    printed += item.data
        used, peak, *_ = [*printed.decode(errors="replace").split(), "", ""]
        micros, most = _number(used), _number(peak)
        cpu = None if micros is None else micros / 1e6
        return replace(await super().usage(), cpu_seconds=cpu, peak_memory_bytes=most)

    async def close(self) -> None:
        """End everything inside and leave nothing behind; may be called twice."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        try:
            if self._before_close is not None:
                with suppress(SandboxDiedError):
                    await self._before_close(self)
        finally:
            await super().close()
            await self._undo.aclose()

    def _based(self) -> Workspace:
        if self._workspace is None:
            raise SandboxError("This sandbox has no base to compare with.")
        return self._workspace


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None
