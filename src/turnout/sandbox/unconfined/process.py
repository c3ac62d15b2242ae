"""The agent of an unconfined sandbox as a child process, its folder, and the end of both."""

import asyncio
import fcntl
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from turnout.core.ids import RunId
from turnout.sandbox.base import Limits
from turnout.sandbox.inside.handover import agent_words

__all__ = ["MARK", "AgentProcess", "Claim", "Folders"]

MARK = "TURNOUT_SANDBOX"
"""Variable of every process inside, with the name of its folder."""

_PATIENCE = 5.0
_REMOVE_SECONDS = 300.0
_ENV = {"PATH": "/usr/bin:/bin"}


@dataclass(frozen=True, slots=True)
class Claim:
    """The folder of one sandbox, locked for as long as the service that made it lives."""

    folder: Path
    lock: int

    def settle(self) -> None:
        """End what is left of the sandbox and remove its folder."""
        _end_strays(self.folder.name)
        _remove(self.folder)
        os.close(self.lock)


class Folders:
    """The folders of unconfined sandboxes."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def claim(self, run_id: RunId) -> Claim:
        """Make a folder for a sandbox."""
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = self._root / secrets.token_hex(8)
        folder.mkdir(mode=0o700)
        lock = os.open(folder / "run", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.write(lock, run_id.encode())
        return Claim(folder, lock)

    def reap(self, known: frozenset[RunId]) -> tuple[RunId, ...]:
        """Remove what dead services left of runs that are not known."""
        reaped = set()
        for path in sorted(self._root.glob("*/run")):
            with suppress(OSError):
                lock = os.open(path, os.O_RDWR | os.O_CLOEXEC)
                with os.fdopen(os.dup(lock), "rb") as file:
                    run_id = RunId(file.read().decode(errors="replace"))
                if run_id in known or not _taken(lock):
                    os.close(lock)
                    continue
                Claim(path.parent, lock).settle()
                reaped.add(run_id)
        return tuple(sorted(reaped - {RunId("")}))


class AgentProcess:
    """An agent that runs as we do."""

    def __init__(self, claim: Claim, process: subprocess.Popen[bytes]) -> None:
        self._claim = claim
        self._process = process

    @classmethod
    def start(
        cls, source: bytes, claim: Claim, root: Path, limits: Limits, channel: socket.socket
    ) -> "AgentProcess":
        """Start the agent on its end of a socket; nothing of our environment goes along."""
        fd = channel.fileno()
        words = agent_words((fd, fd), limits, root=str(root), alone=False)
        process = subprocess.Popen(
            [sys.executable, "-ISE", "-c", source, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(fd,),
            env=_ENV,
            cwd="/",
            start_new_session=True,
        )
        return cls(claim, process)

    async def release(self) -> None:
        """Wait for the agent, which ends with its channel and ends what it started; clean up."""
        await asyncio.to_thread(self._release)

    def _release(self) -> None:
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(_PATIENCE)
        self._claim.settle()


def _taken(lock: int) -> bool:
    """Take a lock that a dead service has left; False where one still holds it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _end_strays(name: str) -> None:
    """End what outlived its agent: processes that inherited the mark of a sandbox."""
    mark = f"{MARK}={name}\0".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark in path.read_bytes():
                os.kill(int(path.parent.name), signal.SIGKILL)


def _remove(folder: Path) -> None:
    """Remove a folder, however deep it has become."""
    remover = shutil.which("rm") or "/bin/rm"
    subprocess.run(
        [remover, "-rf", "--one-file-system", "--", str(folder)], check=False, timeout=300
    )
