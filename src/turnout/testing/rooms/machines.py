"""A host of rented machines whose machines are processes here."""

import asyncio
import shlex
import shutil
from pathlib import Path
from secrets import token_hex

from turnout.errors import SandboxDiedError, SandboxError, SandboxUnavailableError
from turnout.sandbox.base import BASE_ENV
from turnout.sandbox.hosted.machine import MachineWish, Ran
from turnout.testing.rooms.room import Room, RoomPlan, end_process

__all__ = ["LocalMachine", "LocalMachines"]

_FOLDERS = ("/repo", "/venv", "/scratch", BASE_ENV["TMPDIR"])
_MOST_OUTPUT = 64 << 10
"""Hosts keep no more of what a command prints."""


class LocalMachine:
    """One machine; `broken` lets every call fail from then on."""

    def __init__(self, room: Room, folder: Path, host: "LocalMachines") -> None:
        self.id = folder.name
        self.broken = False
        self.pauses = 0
        self.lines: list[str] = []
        """What was run, oldest first."""
        self._room = room
        self._folder = folder
        self._host = host

    async def run(self, line: str, *, timeout: float) -> Ran:
        """Run a line by bash."""
        self.lines.append(line)
        code, out, err = await self._execute(["/bin/bash", "-c", line], b"", timeout)
        text = (stream[-_MOST_OUTPUT:].decode(errors="replace") for stream in (out, err))
        return Ran(code, *text)

    async def read(self, path: str, *, limit: int) -> bytes:
        """Return a file."""
        code, out, _ = await self._execute(["/usr/bin/head", "-c", str(limit), path], b"", 30)
        if code:
            raise SandboxError(f"{path} is not there")
        return out

    async def write(self, path: str, data: bytes) -> None:
        """Write a file and make its folders."""
        folder = shlex.quote(str(Path(path).parent))
        line = f"mkdir -p {folder} && cat > {shlex.quote(path)}"
        code, _, err = await self._execute(["/bin/sh", "-c", line], data, 30)
        if code:
            raise SandboxError(err.decode(errors="replace"))

    async def pause(self) -> bool:
        """Stop every process, and count it."""
        if self._host.can_pause:
            self.pauses += 1
            await self._execute(["/bin/bash", "-c", "kill -STOP -1"], b"", 30)
        return self._host.can_pause

    async def resume(self) -> None:
        """Let every process go on."""
        await self._execute(["/bin/bash", "-c", "kill -CONT -1"], b"", 30)

    async def end(self) -> None:
        """End it."""
        await self._room.close()
        self._host.machines.pop(self.id, None)
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _execute(
        self, argv: list[str], data: bytes, timeout: float
    ) -> tuple[int | None, bytes, bytes]:
        if self.broken:
            raise SandboxDiedError("the host does not answer")
        process = await self._room.execute(argv)
        try:
            async with asyncio.timeout(timeout):
                out, err = await process.communicate(data)
            return process.returncode, out, err
        except TimeoutError:
            return None, b"", b""
        finally:
            await end_process(process)


class LocalMachines:
    """A provider of such machines."""

    name = "local"
    scratch = "/scratch"

    def __init__(self, folder: Path, *, can_pause: bool = True) -> None:
        self.machines: dict[str, LocalMachine] = {}
        """Those that run, by their name."""
        self.wishes: list[MachineWish] = []
        self.admits = True
        self.can_pause = can_pause
        self._folder = folder

    async def check(self) -> str:
        """Say who is known."""
        if not self.admits:
            raise SandboxUnavailableError("The key is not known.", mend="Set another one.")
        return "the test"

    async def start(self, wish: MachineWish) -> LocalMachine:
        """Start a machine."""
        self.wishes.append(wish)
        folder = self._folder / token_hex(6)
        made = {}
        for path in _FOLDERS:
            made[path] = folder / path.strip("/").replace("/", "-")
            made[path].mkdir(parents=True)
        plan = RoomPlan(("/bin/sleep", "infinity"), 1000, made, read_only=False, filtered=False)
        machine = LocalMachine(await Room.open(plan), folder, self)
        self.machines[machine.id] = machine
        return machine

    async def end(self, machine_id: str) -> None:
        """End a machine by its name."""
        if machine_id in self.machines:
            await self.machines[machine_id].end()

    async def close(self) -> None:
        """Do nothing."""
