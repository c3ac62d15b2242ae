"""What a running sandbox holds on the host, and how it is given back."""

import asyncio
import os
import signal
import subprocess
import time
from contextlib import suppress

from turnout.sandbox.walls.cgroup import Cgroup
from turnout.sandbox.walls.launch import Launched
from turnout.sandbox.walls.registry import Entry

__all__ = ["Held"]


class Held:
    """What a running sandbox holds on the host."""

    def __init__(self, entry: Entry, cgroup: Cgroup, launched: Launched) -> None:
        self.cgroup = cgroup
        self.started = time.monotonic()
        self._entry = entry
        self._launched = launched
        self._child = -1

    async def adopt(self) -> None:
        """Put process 1 inside into the control groups, before it is asked to start anything."""
        adopting = asyncio.create_task(asyncio.to_thread(self._adopt))
        try:
            await asyncio.shield(adopting)
        except asyncio.CancelledError:
            self.kill()
            await asyncio.wait([adopting])
            raise

    def _adopt(self) -> None:
        pid = self._launched.child_pid()
        if pid is None:
            return
        with suppress(ProcessLookupError):
            self._child = os.pidfd_open(pid)
            self.cgroup.add(pid)

    def kill(self) -> None:
        """End process 1 inside, and with it the kernel ends everything else there."""
        with suppress(ProcessLookupError):
            if self._child >= 0:
                signal.pidfd_send_signal(self._child, signal.SIGKILL)
            else:
                self._launched.process.kill()

    def complaints(self) -> str:
        """Return what bubblewrap printed."""
        return self._launched.complaints()

    async def release(self) -> None:
        """End what runs and remove what is left."""
        self.kill()
        await asyncio.to_thread(self._release)

    def _release(self) -> None:
        process = self._launched.process
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)
        self._entry.settle(removed=self.cgroup.remove())
        self._launched.close()
        if self._child >= 0:
            os.close(self._child)
            self._child = -1
