"""A sandbox with walls of our own, and how it began: what bubblewrap's and containers' share."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from turnout.core.ids import RunId
from turnout.core.runs import Patch
from turnout.errors import SandboxError
from turnout.sandbox.bare import BareStarter
from turnout.sandbox.base import (
    BaseRef,
    Command,
    Egress,
    Exit,
    LayerRef,
    Limits,
    Output,
    Sandbox,
    SandboxDriver,
    SandboxUsage,
)
from turnout.sandbox.base_layer import find_layer
from turnout.sandbox.channel import Channel
from turnout.sandbox.collector import collect_patch
from turnout.sandbox.resident_sandbox import Fittings, ResidentSandbox
from turnout.sandbox.walls.cgroup import Cgroup
from turnout.sandbox.workspace.layers import Layers, Packing

__all__ = ["Beginning", "ConfinedSandbox", "Held"]


class Held(Protocol):
    """What a running sandbox holds on the host."""

    @property
    def cgroup(self) -> Cgroup:
        """The control groups of all that runs inside."""
        ...

    def kill(self) -> None:
        """End process 1 inside, and with it everything there."""
        ...

    def disk_bytes(self) -> int | None:
        """Return what was written and not removed; None where it is not known."""
        ...

    async def release(self) -> None:
        """End what runs and remove what is left."""
        ...


class _Driver(SandboxDriver, BareStarter, Protocol):
    """What started it and will start another."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """How a sandbox began: what it takes to compare, keep and repeat it."""

    driver: _Driver
    layers: Layers
    base: BaseRef
    limits: Limits
    egress: Egress
    layer: LayerRef | None
    overlay: bool
    """Changes are told from what lies beneath; else the workspace is a copy of its base."""

    async def diff(self, sandbox: Sandbox) -> Patch:
        """Compare its workspace with its base commit."""
        found = find_layer(self.driver.state_dir, self.base)
        if found.history is None:
            raise SandboxError("There is no commit to compare the workspace with.")
        begun = found.tree if self.overlay and self.layer is None else None
        return await collect_patch(
            self.driver, sandbox, found.history, found.commit, begun=begun, under=found.under
        )

    async def keep(self, packing: Packing) -> LayerRef:
        """Keep what was changed."""
        return await self.layers.keep(self.driver, packing, self.base, self.layer)

    async def repeat(self, run_id: RunId, layer: LayerRef) -> Sandbox:
        """Start another one with these changes."""
        return await self.driver.create(
            run_id, self.base, self.limits, egress=self.egress, layer=layer
        )

    async def layer_folders(self) -> tuple[Path, ...]:
        """Return the folders of its layers, uppermost first, where they lie over each other."""
        if self.layer is None or not self.overlay:
            return ()
        await self.layers.lay_down(self.driver, self.layer)
        return self.layers.folders(self.base, self.layer)

    async def finish(self, sandbox: Sandbox) -> None:
        """Make the copy of a base what its layer says."""
        if self.layer is not None and not self.overlay:
            await self.layers.apply(sandbox, self.driver.python, self.base, self.layer)


class ConfinedSandbox(ResidentSandbox):
    """A sandbox behind walls that its driver holds; one without a beginning has no base."""

    def __init__(
        self,
        fittings: Fittings,
        channel: Channel,
        held: Held,
        python: str,
        beginning: Beginning | None = None,
    ) -> None:
        super().__init__(fittings, channel)
        self.python = python
        """Path inside of its own Python interpreter."""
        self._held = held
        self._beginning = beginning
        self._closing: asyncio.Task[None] | None = None

    async def exec(self, command: Command) -> AsyncIterator[Output | Exit]:
        """Run a command and pass on what it prints; the last item is its `Exit`."""
        before = self._held.cgroup.oom_kills()
        async for item in super().exec(command):
            failed = isinstance(item, Exit) and item.reason == "exited" and item.code != 0
            if isinstance(item, Exit) and failed and self._held.cgroup.oom_kills() > before:
                yield replace(item, reason="oom")
            else:
                yield item

    async def diff(self) -> Patch:
        """Compare the workspace with its base commit, by a sandbox that the run never touched."""
        if self._beginning is None:
            return await super().diff()
        return await self._beginning.diff(self)

    async def snapshot(self) -> LayerRef:
        """Keep what was changed so far as a layer; everything is frozen meanwhile."""
        begun = self._beginning
        if begun is None:
            return await super().snapshot()
        limits = self._fittings.limits
        packing = Packing(self._channel, limits, self.python, copied=not begun.overlay)
        async with self._lifetime.frozen():
            try:
                return await begun.keep(packing)
            except SandboxError:
                packing.check()
                raise

    async def fork(self, run_id: RunId) -> Sandbox:
        """Start another sandbox with the same workspace, as `snapshot` and `create` would."""
        if self._beginning is None:
            return await super().fork(run_id)
        return await self._beginning.repeat(run_id, await self.snapshot())

    async def usage(self) -> SandboxUsage:
        """Return what was used so far."""
        cgroup = self._held.cgroup
        return replace(
            await super().usage(),
            cpu_seconds=cgroup.cpu_seconds(),
            peak_memory_bytes=cgroup.peak_memory_bytes(),
            disk_bytes=self._held.disk_bytes(),
        )

    def kill(self) -> None:
        """End process 1 inside at once, and with it everything there."""
        self._held.kill()

    async def close(self) -> None:
        """End everything inside and leave nothing behind; may be called twice."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        await super().close()
        await self._held.release()
