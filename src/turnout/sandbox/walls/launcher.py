"""The service's side of `stage`: the one process that starts sandboxes for a driver."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import weakref
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from turnout.errors import SandboxUnavailableError
from turnout.sandbox.walls import stage

__all__ = ["Launcher", "Started", "readable_within", "why_not"]

_BEGIN_SECONDS = 20.0
_STAGE_SECONDS = 20.0
_ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
_REPLY = 64
_NAMESPACES_MEND = (
    "Allow user namespaces: `sysctl -w user.max_user_namespaces=15000`, on Debian also "
    "`sysctl -w kernel.unprivileged_userns_clone=1`, on Ubuntu 24.04 or later "
    "`sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`; in a container start it with "
    "`--security-opt seccomp=unconfined --security-opt apparmor=unconfined`."
)


def why_not(complaint: str) -> SandboxUnavailableError:
    """Return the error for a sandbox that did not start, with what would help."""
    text = complaint.splitlines()[-1] if complaint else "it printed nothing"
    hints = ("namespace", "uid map", "loopback", "Operation not permitted", "mount proc", "unshare")
    mend = _NAMESPACES_MEND if any(hint in complaint for hint in hints) else ""
    return SandboxUnavailableError(f"The sandbox did not start: {text.rstrip('.')}.", mend=mend)


async def readable_within(fd: int, seconds: float) -> bool:
    """Wait until a descriptor can be read; False where that takes too long."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(fd, ready.set)
    try:
        async with asyncio.timeout(seconds):
            await ready.wait()
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(fd)
    return True


class Started:
    """A program that was started on a stage of its own; it keeps alive what started it."""

    def __init__(
        self, launcher: "Launcher", process_fd: int, stage_fd: int, complaints_fd: int
    ) -> None:
        self._launcher = launcher
        self._process_fd = process_fd
        self._stage_fd = stage_fd
        self._complaints_fd = complaints_fd

    def disk_bytes(self) -> int | None:
        """Return what is written on the stage; None where there is none."""
        if self._stage_fd < 0:
            return None
        facts = os.fstatvfs(self._stage_fd)
        return (facts.f_blocks - facts.f_bfree) * facts.f_frsize

    def complaints(self) -> str:
        """Return what it printed, for people."""
        return _text(self._complaints_fd)

    def kill(self) -> None:
        """End the program at once, with the processes that it has not bound to itself yet."""
        if self._process_fd >= 0:
            with suppress(ProcessLookupError):
                os.killpg(_leader(self._process_fd), signal.SIGKILL)

    async def ended(self, seconds: float) -> bool:
        """Wait for its end; False where it takes longer."""
        return self._process_fd < 0 or await readable_within(self._process_fd, seconds)

    def close(self) -> None:
        """Close the descriptors; the files of the stage go with the last of its processes."""
        for fd in (self._process_fd, self._stage_fd, self._complaints_fd):
            if fd >= 0:
                os.close(fd)
        self._process_fd = self._stage_fd = self._complaints_fd = -1


def _leader(process_fd: int) -> int:
    """Return the pid of a process, which leads its group; `ProcessLookupError` once it is gone."""
    told = Path(f"/proc/self/fdinfo/{process_fd}").read_text()
    pid = int(told.partition("Pid:")[2].split()[0])
    if pid <= 0:
        raise ProcessLookupError
    return pid


class Launcher:
    """Forks for each sandbox in a process of its own, which ends when nobody holds this any more.

    With that process everything ends that it has started, and so it does with the service. Programs
    know a search path alone of the environment. `clients`: what is started speaks for something
    that lives elsewhere, knows the service's whole environment, and ends by itself.
    """

    def __init__(self, *, clients: bool = False) -> None:
        self._clients = clients
        self._control: socket.socket | None = None

    async def start(self, plan: stage.Plan, fds: Sequence[int]) -> Started:
        """Do a plan; its program inherits `fds` from number `FIRST_FD` on.

        `SandboxUnavailableError` where the stage cannot be laid out.
        """
        with ExitStack() as undo:
            complaints = os.memfd_create("turnout-complaints", os.MFD_CLOEXEC)
            undo.callback(os.close, complaints)
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with ours:
                with theirs:
                    await self._send(plan.encode(), [theirs.fileno(), complaints, *fds])
                process_fd, stage_fd = await _reply(ours, complaints)
            undo.pop_all()
        return Started(self, process_fd, stage_fd, complaints)

    def close(self) -> None:
        """End the process; another one begins where there is more to start."""
        if self._control is not None:
            self._control.close()
            self._control = None

    async def _send(self, data: bytes, fds: Sequence[int]) -> None:
        if self._control is not None:
            try:
                socket.send_fds(self._control, [data], fds)
            except OSError:
                self._control.close()
                self._control = None
            else:
                return
        self._control = await asyncio.to_thread(_begin, clients=self._clients)
        weakref.finalize(self, self._control.close)
        socket.send_fds(self._control, [data], fds)


def _begin(*, clients: bool) -> socket.socket:
    """Start the process, which is nobody's child afterwards, and return the socket it serves."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    what = "lend" if clients else "serve"
    argv = [sys.executable, "-ISE", stage.__file__, what, str(theirs.fileno())]
    try:
        with theirs:
            subprocess.run(
                argv,
                check=True,
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=None if clients else _ENV,
                cwd="/",
                timeout=_BEGIN_SECONDS,
            )
    except (OSError, subprocess.SubprocessError) as error:
        ours.close()
        raise SandboxUnavailableError(
            f"The process that starts sandboxes did not start: {error}.",
            mend="Check that this Python can be run: " + (sys.executable or "it has no path"),
        ) from error
    return ours


async def _reply(ours: socket.socket, complaints: int) -> tuple[int, int]:
    """Wait until the stage is laid out; returns the program's descriptor and that of the stage."""
    if not await readable_within(ours.fileno(), _STAGE_SECONDS):
        raise SandboxUnavailableError("The file systems of a sandbox were not laid out in time.")
    data, fds = stage.receive(ours, _REPLY)
    if data != b"staged":
        raise why_not(_text(complaints))
    return fds[0], fds[1] if len(fds) > 1 else -1


def _text(fd: int) -> str:
    return os.pread(fd, 4000, 0).decode(errors="backslashreplace").strip()
