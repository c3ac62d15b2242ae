"""What a running sandbox holds on the host: how it is taken, and how it is given back."""

import asyncio
import os
import signal
import socket
from collections.abc import Mapping
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass, replace

from turnout.core.ids import RunId
from turnout.errors import SandboxDiedError
from turnout.sandbox.base import Egress, Limits
from turnout.sandbox.channel import Channel
from turnout.sandbox.egress.gate import EgressServices, Gate, open_gate
from turnout.sandbox.egress.trust import BUNDLE_INSIDE
from turnout.sandbox.inside.handover import agent_words
from turnout.sandbox.resident.listener import receive_listener
from turnout.sandbox.walls.arguments import FILES_INSIDE
from turnout.sandbox.walls.cgroup import Cgroup
from turnout.sandbox.walls.contents import Contents
from turnout.sandbox.walls.launch import Launched, launch
from turnout.sandbox.walls.launcher import why_not
from turnout.sandbox.walls.registry import Entry, Registry
from turnout.sandbox.walls.stage import FIRST_FD
from turnout.sandbox.walls.survey import Walls

__all__ = ["Held", "Order", "begin"]

_START_SECONDS = 20.0
_HANDOVER_SECONDS = 5.0
_END_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Order:
    """A sandbox that is to be started."""

    run_id: RunId
    contents: Contents
    limits: Limits
    egress: Egress


class Held:
    """What a running sandbox holds on the host."""

    def __init__(
        self, entry: Entry, cgroup: Cgroup, launched: Launched, egress: Egress, gate: Gate | None
    ) -> None:
        self.cgroup = cgroup
        self.gate = gate
        self._entry = entry
        self._launched = launched
        self._egress = egress
        self._child = -1

    @property
    def variables(self) -> Mapping[str, str]:
        """What the environment of every command needs."""
        return dict(self._egress.variables) if self.gate is None else self.gate.variables()

    def adopt(self) -> None:
        """Get hold of process 1 inside, which has spoken already."""
        pid = self._launched.child_pid()
        if pid is not None:
            with suppress(ProcessLookupError):
                self._child = os.pidfd_open(pid)

    def kill(self) -> None:
        """End process 1 inside, and with it the kernel ends everything else there."""
        with suppress(ProcessLookupError):
            if self._child >= 0:
                signal.pidfd_send_signal(self._child, signal.SIGKILL)
            else:
                self._launched.started.kill()

    def complaints(self) -> str:
        """Return what bubblewrap printed."""
        return self._launched.started.complaints()

    def disk_bytes(self) -> int | None:
        """Return what was written and not removed; None where it is not known."""
        return self._launched.started.disk_bytes()

    async def release(self) -> None:
        """End what runs and remove what is left."""
        self.kill()
        if self.gate is not None:
            await self.gate.close()
        started = self._launched.started
        if not await started.ended(_END_SECONDS):
            started.kill()
            await started.ended(_END_SECONDS)
        self._entry.settle(removed=await asyncio.to_thread(self.cgroup.remove))
        self._launched.close()
        if self._child >= 0:
            os.close(self._child)
            self._child = -1


async def begin(
    walls: Walls, registry: Registry, services: EgressServices, order: Order
) -> tuple[Channel, Held]:
    """Start a sandbox and its agent; nothing of it is left where that fails."""
    async with AsyncExitStack() as undo:
        gate = open_gate(services, order.egress)
        if gate is not None:
            undo.push_async_callback(gate.close)
        ours, theirs = socket.socketpair()
        undo.callback(ours.close)
        undo.callback(theirs.close)
        host, guest = socket.socketpair()
        with host, guest:
            held = await _launch(walls, registry, order, gate, [theirs.fileno(), guest.fileno()])
            undo.push_async_callback(held.release)
            theirs.close()
            channel = await Channel.over(ours, held.kill)
            undo.push_async_callback(channel.closed)
            undo.callback(channel.end, "it did not start")
            try:
                await channel.wait_ready(_START_SECONDS)
            except SandboxDiedError:
                raise why_not(held.complaints()) from None
            held.adopt()
            if gate is not None:
                await gate.serve(await receive_listener(host, _HANDOVER_SECONDS))
        undo.pop_all()
    return channel, held


async def _launch(
    walls: Walls, registry: Registry, order: Order, gate: Gate | None, fds: list[int]
) -> Held:
    """Start the walls and the agent, registered so that a crash leaves nothing behind."""
    channel_fd, egress_fd = FIRST_FD, FIRST_FD + 1
    contents, limits = order.contents, order.limits
    words = agent_words(
        (channel_fd, channel_fd),
        limits,
        egress="" if gate is None else f"fd:{egress_fd}",
        watch=not walls.cgroups.version,
    )
    if gate is not None and gate.bundle:
        name = BUNDLE_INSIDE.removeprefix(f"{FILES_INSIDE}/")
        contents = replace(contents, files={**contents.files, name: gate.bundle})
    agent = (walls.interpreter.path, "-ISE", f"{FILES_INSIDE}/resident.pyc", *words)
    with ExitStack() as undo:
        entry = registry.add()
        undo.callback(entry.settle, removed=True)
        # Before they are made: whoever is killed in between has left word of them.
        entry.note(order.run_id, walls.cgroups.folders(entry.name).values())
        cgroup = Cgroup.make(walls.cgroups, entry.name, limits)
        undo.callback(cgroup.remove)
        launched = await launch(
            walls.footing,
            agent,
            contents,
            limits,
            fds=fds if gate is not None else fds[:1],
            groups=cgroup.entrances,
        )
        undo.pop_all()
    return Held(entry, cgroup, launched, order.egress, gate)
