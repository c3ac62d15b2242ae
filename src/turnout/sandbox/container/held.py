"""What a running container holds on the host, and how it is given back."""

import asyncio
import os
import signal
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from turnout.core.ids import RunId
from turnout.sandbox.base import NO_EGRESS, Egress
from turnout.sandbox.container.engines.user import User
from turnout.sandbox.container.yard import Yard
from turnout.sandbox.egress.gate import Gate
from turnout.sandbox.egress.trust import BUNDLE_INSIDE
from turnout.sandbox.resident.listener import receive_listener
from turnout.sandbox.walls.arguments import FILES_INSIDE
from turnout.sandbox.walls.cgroup import Cgroup
from turnout.sandbox.walls.launcher import Started, readable_within
from turnout.sandbox.walls.registry import Entry

__all__ = ["Held"]

_HANDOVER_SECONDS = 5.0
_END_SECONDS = 5.0


class Held:
    """What a running container holds on the host."""

    def __init__(
        self, yard: Yard, entry: Entry, user: User, started: Started, door: socket.socket | None
    ) -> None:
        self.cgroup = Cgroup(0, {})
        """Known once it was adopted."""
        self.gate: Gate | None = None
        self._yard = yard
        self._entry = entry
        self._user = user
        self._started = started
        self._door = door
        self._listener: socket.socket | None = None
        self._egress = NO_EGRESS
        self._process = -1

    @property
    def variables(self) -> Mapping[str, str]:
        """What the environment of every command needs."""
        return dict(self._egress.variables) if self.gate is None else self.gate.variables()

    async def adopt(self) -> None:
        """Get hold of the main process, which has spoken already, and of what it hands over."""
        pid = await self._main_process()
        if pid is not None:
            with suppress(OSError):
                self._process = os.pidfd_open(pid)
            self.cgroup = Cgroup.around(pid)
        if self._door is not None:
            with self._door:
                self._listener = await receive_listener(self._door, _HANDOVER_SECONDS)
            self._door = None

    async def _main_process(self) -> int | None:
        """Return its pid as the engine says; None where that is not to be believed."""
        engine = self._yard.survey.engine
        if engine.is_podman:
            path = self._yard.own_folder(self._entry.name).pid_file
            said = await asyncio.to_thread(path.read_bytes) if path.exists() else b""
        else:
            asked = await engine.call("inspect", "--format={{.State.Pid}}", self._entry.name)
            said = asked.stdout
        pid = int(said) if said.strip().isdigit() else 0
        uid = os.getuid() if engine.rootless else self._user.uid
        return pid if pid and _is_first(pid, uid) else None

    async def assign(self, run_id: RunId, egress: Egress, gate: Gate | None) -> None:
        """Give it to a run; `gate` is its own from now on, and serves what it may reach."""
        self._entry.note(run_id, [])
        self._egress = egress
        self.gate = gate
        listener, self._listener = self._listener, None
        if listener is None:
            return
        if gate is None:
            listener.close()
            return
        if gate.bundle:
            name = BUNDLE_INSIDE.removeprefix(f"{FILES_INSIDE}/")
            self._yard.own_folder(self._entry.name).add(name, gate.bundle)
        await gate.serve(listener)

    def kill(self) -> None:
        """End its main process, and with it the kernel ends everything else inside.

        Where we may not, it ends because its channel has.
        """
        if self._process >= 0:
            with suppress(OSError):
                signal.pidfd_send_signal(self._process, signal.SIGKILL)

    def complaints(self) -> str:
        """Return what the engine or the agent printed."""
        return self._started.complaints()

    def disk_bytes(self) -> int | None:
        """Return what was written and not removed; None where it is not known."""
        return self._started.disk_bytes()

    async def release(self) -> None:
        """End what runs and remove what is left."""
        self.kill()
        if self.gate is not None:
            await self.gate.close()
        for sock in (self._door, self._listener):
            if sock is not None:
                sock.close()
        if self._process >= 0:
            await readable_within(self._process, _END_SECONDS)
            os.close(self._process)
            self._process = -1
        # Before the engine's client is done there may be nothing to remove yet.
        if not await self._started.ended(_END_SECONDS):
            self._started.kill()
            await self._started.ended(_END_SECONDS)
        await self._yard.remove(self._entry)
        self._started.close()


def _is_first(pid: int, uid: int) -> bool:
    """Whether a process is the first of a namespace of its own and runs under a uid."""
    try:
        lines = Path("/proc", str(pid), "status").read_text().splitlines()
    except OSError:
        return False
    fields = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
    return fields.get("Uid", [])[:1] == [str(uid)] and fields.get("NSpid", [])[1:] == ["1"]
