"""The command line of bubblewrap: what a sandbox sees, and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from turnout.sandbox.base import REPO, WORKSPACE, Limits, Mount

__all__ = ["FILES_INSIDE", "INSIDE_UID", "STAGE", "DataFile", "Ends", "bubblewrap_arguments"]

INSIDE_UID = 1000
"""Uid and gid that everything inside seems to belong to."""

FILES_INSIDE = "/run/turnout"
"""Where the programs are that we hand in."""

STAGE = "/tmp"
"""The folder that a stage hides, from its own processes alone; bubblewrap itself needs it."""

_SHM_BYTES = 64 << 20
_SYSTEM_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_SYSTEM_FILES = (
    *("alternatives", "ld.so.cache", "protocols", "services"),
    *("ssl/certs", "pki/ca-trust", "pki/tls/certs"),
)
"""The only parts of the host's `/etc` that show; each costs a start a third of a millisecond."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A read-only file whose bytes come from a descriptor."""

    fd: int
    target: str


@dataclass(frozen=True, slots=True)
class Ends:
    """Descriptors that bubblewrap reads from and writes to."""

    data: tuple[DataFile, ...]
    seccomp: int
    info: int
    """It writes the pid of process 1 inside to it."""


def _system() -> list[str]:
    """Show the host's programs and libraries, and of `/etc` what they cannot do without."""
    arguments = ["--ro-bind", "/usr", "/usr"]
    for name in _SYSTEM_LINKS:
        path = Path("/", name)
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            arguments += ["--ro-bind", str(path), str(path)]
    for name in _SYSTEM_FILES:
        if Path("/etc", name).exists():
            arguments += ["--ro-bind", f"/etc/{name}", f"/etc/{name}"]
    return arguments


def _written(limits: Limits, staged: bool) -> list[str]:
    """Return what a run may write: folders of its stage, or without one a tmpfs each."""
    if staged:
        shm = ["--bind", f"{STAGE}/shm", "/dev/shm"]
        temporary = ["--bind", f"{STAGE}/tmp", "/tmp"]
        repository = ["--bind", f"{STAGE}/repo", REPO]
    else:
        disk = str(limits.disk_bytes)
        shm = ["--size", str(_SHM_BYTES), "--perms", "1777", "--tmpfs", "/dev/shm"]
        temporary = ["--size", disk, "--perms", "1777", "--tmpfs", "/tmp"]
        temporary += ["--perms", "0700", "--dir", "/tmp/home"]
        repository = ["--size", disk, "--perms", "0755", "--tmpfs", REPO]
    arguments = ["--dev", "/dev", *shm, "--remount-ro", "/dev", "--proc", "/proc"]
    return [*arguments, *temporary, *repository, "--symlink", REPO, WORKSPACE]


def bubblewrap_arguments(
    limits: Limits, mounts: Sequence[Mount], ends: Ends, *, staged: bool, disable_userns: bool
) -> list[str]:
    """Return bubblewrap's options; the program to run comes after them.

    `staged`: `STAGE` holds `repo`, `tmp` and `shm`.
    """
    own = str(INSIDE_UID)
    arguments = ["--unshare-user", "--uid", own, "--gid", own, "--cap-drop", "ALL", "--clearenv"]
    arguments += ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    arguments += ["--unshare-cgroup-try", "--hostname", "sandbox", "--as-pid-1"]
    arguments += ["--die-with-parent", "--new-session"]
    if disable_userns:
        arguments.append("--disable-userns")
    arguments += ["--perms", "0755", "--dir", "/etc", *_system(), *_written(limits, staged)]
    for mount in mounts:
        arguments += ["--bind" if mount.writable else "--ro-bind", mount.source, mount.target]
    for file in ends.data:
        arguments += ["--perms", "0444", "--ro-bind-data", str(file.fd), file.target]
    arguments += ["--seccomp", str(ends.seccomp), "--info-fd", str(ends.info)]
    arguments += ["--remount-ro", "/", "--chdir", "/"]
    return arguments
