"""Starting bubblewrap: its descriptors, its identity and the stage that it shows."""

import os
import re
import stat
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from turnout.errors import SandboxUnavailableError
from turnout.sandbox.base import Limits, Mount
from turnout.sandbox.walls import seccomp
from turnout.sandbox.walls.arguments import (
    FILES_INSIDE,
    INSIDE_UID,
    STAGE,
    DataFile,
    Ends,
    bubblewrap_arguments,
)
from turnout.sandbox.walls.contents import Contents
from turnout.sandbox.walls.identity import Identity, choose_identity
from turnout.sandbox.walls.launcher import Launcher, Started
from turnout.sandbox.walls.stage import BELOW, CHANGES, FIRST_FD, Bind, Overlay, Plan

__all__ = [
    "CHANGES_INSIDE",
    "Bubblewrap",
    "Footing",
    "Launched",
    "Staging",
    "empty_plan",
    "find_bubblewrap",
    "launch",
]

CHANGES_INSIDE = f"{FILES_INSIDE}/changes"
"""Where a run's own changes of every tree are shown, read-only, by the tree's name."""

Staging = Literal["overlay", "folders", "none"]
"""What a stage can hold: trees that are laid over others, plain folders only, or there is none."""

_CHILD_PID = re.compile(rb'"child-pid":\s*(\d+)\D')
_ACCOUNTS = {
    "/etc/passwd": (
        f"root:x:0:0::/:/bin/sh\nagent:x:{INSIDE_UID}:{INSIDE_UID}::/tmp/home:/bin/bash\n"
    ),
    "/etc/group": f"root:x:0:\nagent:x:{INSIDE_UID}:\n",
    "/etc/hosts": "127.0.0.1 localhost sandbox\n::1 localhost sandbox\n",
}


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """The program and what this version of it can do."""

    path: str
    disables_userns: bool
    """Takes `--disable-userns`: nothing inside can make a user namespace. Set-uid it does not."""


@dataclass(frozen=True, slots=True)
class Footing:
    """What every sandbox of a driver is started with."""

    launcher: Launcher
    bubblewrap: Bubblewrap
    machine: str
    staging: Staging = "none"


@dataclass(frozen=True, slots=True)
class Launched:
    """A bubblewrap that was started."""

    started: Started
    info_fd: int

    def child_pid(self) -> int | None:
        """Return the pid, seen from here, of process 1 inside; known once that has spoken."""
        try:
            found = _CHILD_PID.search(os.read(self.info_fd, 4096))
        except BlockingIOError:
            return None
        return int(found.group(1)) if found else None

    def close(self) -> None:
        """Close the descriptors."""
        os.close(self.info_fd)
        self.started.close()


def find_bubblewrap(path: str | None) -> Bubblewrap:
    """Ask bubblewrap what it can do; `SandboxUnavailableError` where it is missing or too old."""
    if path is None or not os.access(path, os.X_OK):
        raise SandboxUnavailableError(
            "bubblewrap is not installed.", mend="Run `sudo apt-get install bubblewrap`."
        )
    result = subprocess.run([path, "--help"], capture_output=True, check=False, timeout=10)
    options = set(re.findall(rb"--[a-z-]+", result.stdout + result.stderr))
    if not {b"--size", b"--perms", b"--as-pid-", b"--clearenv"} <= options:
        raise SandboxUnavailableError(
            "bubblewrap is too old.", mend="Install bubblewrap 0.6 or newer."
        )
    set_uid = bool(Path(path).stat().st_mode & stat.S_ISUID)
    return Bubblewrap(path, b"--disable-userns" in options and not set_uid)


class _Descriptors:
    """Descriptors for a program that does not run yet, by the numbers that it will find."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.ours: list[int] = []

    def lend(self, fd: int) -> int:
        """Hand on a descriptor that stays ours as well."""
        self.ours.append(fd)
        return FIRST_FD + len(self.ours) - 1

    def give(self, fd: int) -> int:
        """Hand on a descriptor that is closed here afterwards."""
        self._stack.callback(os.close, fd)
        return self.lend(fd)

    def holding(self, data: bytes) -> int:
        fd = os.memfd_create("turnout", os.MFD_CLOEXEC)
        number = self.give(fd)
        with os.fdopen(os.dup(fd), "wb") as file:
            file.write(data)
        os.lseek(fd, 0, os.SEEK_SET)
        return number


def _unreachable(path: Path) -> bool:
    """Whether a uid that owns nothing cannot get to a folder by its path."""
    return any(not parent.stat().st_mode & 0o001 for parent in path.resolve().parents)


def empty_plan(limits: Limits, identity: Identity | None, groups: Sequence[str]) -> Plan:
    """Return the plan of a stage with nothing but an own `/tmp` and `/dev/shm`."""
    return Plan(
        stage=STAGE,
        size=limits.disk_bytes,
        inodes=limits.inodes,
        identity=(identity.uid, identity.gid) if identity else None,
        groups=list(groups),
        folders=[("tmp", 0o1777), ("tmp/home", 0o700), ("shm", 0o1777)],
        overlays=[],
        binds=[],
        argv=[],
    )


def _staged(plan: Plan, contents: Contents) -> tuple[Plan, list[Mount]]:
    """Lay the contents out on the stage; returns the mounts as they are found there."""
    binds = [Bind(f"mount{n}", mount.source) for n, mount in enumerate(contents.mounts)]
    mounts = [
        replace(mount, source=f"{STAGE}/{bind.name}")
        for mount, bind in zip(contents.mounts, binds, strict=True)
    ]
    for tree in contents.trees:
        mounts.append(Mount(f"{STAGE}/{BELOW}/{tree.name}", tree.below))
        if tree.name != "repo":
            mounts.append(Mount(f"{STAGE}/{tree.name}", tree.target, writable=True))
    folders = plan.folders
    if contents.trees:
        mounts.append(Mount(f"{STAGE}/{CHANGES}", CHANGES_INSIDE))
    if not any(tree.name == "repo" for tree in contents.trees):
        folders = [*folders, ("repo", 0o755)]
    overlays = [Overlay(tree.name, list(tree.lowers)) for tree in contents.trees]
    return plan._replace(folders=folders, overlays=overlays, binds=binds), mounts


def _unstaged(plan: Plan, contents: Contents) -> tuple[Plan, list[Mount]]:
    """Do without a stage: every mount is shown from where it is."""
    if plan.identity and any(_unreachable(Path(mount.source)) for mount in contents.mounts):
        raise SandboxUnavailableError(
            "The state folder is below a folder that only root may enter.",
            mend="Set TURNOUT_HOME to a folder that every user may traverse.",
        )
    return plan._replace(stage="", folders=[]), list(contents.mounts)


async def launch(
    footing: Footing,
    program: Sequence[str],
    contents: Contents,
    limits: Limits,
    *,
    fds: Sequence[int],
    groups: Sequence[str] = (),
) -> Launched:
    """Start a program behind the walls; it inherits `fds` by the numbers from `FIRST_FD` on.

    As root the walls belong to a uid of their own, taken on before bubblewrap starts, and writable
    mounts are handed over to it. `groups` are files of control groups that it enters first.
    """
    identity = choose_identity()
    plan = empty_plan(limits, identity, groups)
    staged = footing.staging != "none"
    plan, mounts = (_staged if staged else _unstaged)(plan, contents)
    if identity is not None:
        for mount in contents.mounts:
            if mount.writable:
                os.chown(mount.source, identity.uid, identity.gid)
    files = {path: text.encode() for path, text in _ACCOUNTS.items()}
    files |= {f"{FILES_INSIDE}/{name}": data for name, data in contents.files.items()}
    with ExitStack() as stack, ExitStack() as undo:
        descriptors = _Descriptors(stack)
        for fd in fds:
            descriptors.lend(fd)
        data = tuple(DataFile(descriptors.holding(body), path) for path, body in files.items())
        info_fd, info_writer = os.pipe()
        undo.callback(os.close, info_fd)
        os.set_blocking(info_fd, False)
        info = descriptors.give(info_writer)
        ends = Ends(data, descriptors.holding(seccomp.program(footing.machine)), info)
        options = bubblewrap_arguments(
            limits,
            mounts,
            ends,
            staged=staged,
            disable_userns=footing.bubblewrap.disables_userns,
        )
        plan = plan._replace(argv=[footing.bubblewrap.path, *options, "--", *program])
        started = await footing.launcher.start(plan, descriptors.ours)
        undo.pop_all()
    return Launched(started, info_fd)
