"""One container as processes behind bubblewrap."""

import asyncio
import json
import os
import platform
import shutil
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from turnout.errors import SandboxUnavailableError
from turnout.sandbox.walls import seccomp

__all__ = ["Room", "RoomPlan", "end_process"]

_START_SECONDS = 20.0
_LOOK_SECONDS = 0.005
_BINDS = ("/usr", "/etc/alternatives", "/etc/ld.so.cache", "/etc/ssl")
_DEVICES = ("full", "null", "random", "urandom", "zero")
"""One by one: bubblewrap's own `/dev` takes a user namespace more, which nobody can enter."""
_SHARED = "shm"
_STREAMS = {"fd": "fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
_LINKS = ("bin", "lib", "lib64", "sbin")


@dataclass(frozen=True, slots=True)
class RoomPlan:
    """What a container may see and do."""

    command: tuple[str, ...]
    uid: int
    folders: Mapping[str, Path]
    """Host folders by their path inside, all of them writable."""
    variables: Mapping[str, str] = field(default_factory=dict)
    workdir: str = "/"
    network: bool = False
    """It is in the network of the host, and not in one of its own."""
    filtered: bool = True
    """System calls are filtered."""
    read_only: bool = True
    hostname: str = "room"


class Room:
    """A container that runs."""

    def __init__(self, plan: RoomPlan, process: Process, pid: int) -> None:
        self._plan = plan
        self._process = process
        self._pid = pid
        """Of its process 1, as the host counts."""

    @classmethod
    async def open(cls, plan: RoomPlan) -> "Room":
        """Start a container."""
        reader, writer = os.pipe()
        passed = [writer]
        try:
            if plan.filtered:
                passed.append(_holding(seccomp.program(platform.machine())))
            process = await asyncio.create_subprocess_exec(
                *_arguments(plan, passed),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                pass_fds=passed,
                env={},
                start_new_session=True,
            )
        finally:
            for fd in passed:
                os.close(fd)
        with os.fdopen(reader, "rb") as told, ExitStack() as undo:
            undo.callback(_kill, process)
            async with asyncio.timeout(_START_SECONDS):
                text = await asyncio.to_thread(told.read)
                pid = int(json.loads(text or "{}").get("child-pid", 0))
                await _begun(pid)
            if not pid:
                raise SandboxUnavailableError("bubblewrap did not start a container.")
            undo.pop_all()
        return cls(plan, process, pid)

    async def wait(self) -> int:
        """Wait for the end of its process 1 and return its exit status."""
        return await self._process.wait()

    async def close(self) -> None:
        """End every process of it."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self._pid, 9)
        await self._process.wait()

    async def execute(self, command: Sequence[str]) -> Process:
        """Start another process in it, with pipes for its standard streams."""
        enter = [_program("nsenter"), "--target", str(self._pid), "--preserve-credentials"]
        enter += ["--user", "--mount", "--pid", "--ipc", "--uts"]
        enter += [] if self._plan.network else ["--net"]
        return await asyncio.create_subprocess_exec(
            *enter,
            "--",
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=dict(self._plan.variables),
            start_new_session=True,
        )


def _kill(process: Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()


async def end_process(process: Process) -> None:
    """End a process that was started in a container, if it runs still.

    What was entered by is one process, what runs inside another of its group.
    """
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        await process.wait()


async def _begun(pid: int) -> None:
    """Wait until process 1 of a container is the container's own program, or has ended."""
    for _ in range(round(_START_SECONDS / _LOOK_SECONDS)):
        if not _is_bubblewrap(pid):
            return
        await asyncio.sleep(_LOOK_SECONDS)


def _is_bubblewrap(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/exe").readlink().name == "bwrap"
    except OSError:
        return False


def _arguments(plan: RoomPlan, passed: list[int]) -> list[str]:
    """Return the command that starts a container; `passed` holds descriptors: info, filter."""
    argv = [_program("bwrap"), "--unshare-all", "--die-with-parent", "--new-session"]
    argv += ["--as-pid-1", "--cap-drop", "ALL", "--info-fd", str(passed[0]), "--clearenv"]
    argv += ["--uid", str(plan.uid), "--gid", str(plan.uid), "--hostname", plan.hostname]
    argv += ["--share-net"] if plan.network else []
    argv += ["--seccomp", str(passed[1])] if plan.filtered else []
    for path in _BINDS:
        argv += ["--ro-bind-try", path, path]
    for name in _LINKS:
        argv += ["--symlink", f"usr/{name}", f"/{name}"]
    argv += ["--proc", "/proc", "--tmpfs", "/dev", "--dir", f"/dev/{_SHARED}"]
    for name in _DEVICES:
        argv += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    for name, target in _STREAMS.items():
        argv += ["--symlink", f"/proc/self/{target}", f"/dev/{name}"]
    for path, folder in sorted(plan.folders.items()):
        argv += ["--bind", str(folder), path]
    argv += ["--remount-ro", "/"] if plan.read_only else []
    for name, value in plan.variables.items():
        argv += ["--setenv", name, value]
    return [*argv, "--chdir", plan.workdir, "--", *plan.command]


def _holding(data: bytes) -> int:
    fd = os.memfd_create("filter")
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise SandboxUnavailableError(f"{name} is not installed.")
    return found
