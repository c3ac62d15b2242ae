"""The command line of bubblewrap: what a sandbox sees, and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from turnout.sandbox.base import REPO, Limits, Mount

__all__ = ["FILES_INSIDE", "INSIDE_UID", "DataFile", "bubblewrap_arguments"]

INSIDE_UID = 1000
"""Uid and gid that everything inside seems to belong to."""

FILES_INSIDE = "/run/turnout"
"""Where the programs are that we hand in."""

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


def bubblewrap_arguments(
    *,
    limits: Limits,
    mounts: Sequence[Mount],
    data: Sequence[DataFile],
    seccomp_fd: int,
    info_fd: int,
    disable_userns: bool,
) -> list[str]:
    """Return bubblewrap's options; the program to run comes after them."""
    own = str(INSIDE_UID)
    disk = str(limits.disk_bytes)
    arguments = ["--unshare-user", "--uid", own, "--gid", own, "--cap-drop", "ALL", "--clearenv"]
    arguments += ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    arguments += ["--unshare-cgroup-try", "--hostname", "sandbox", "--as-pid-1"]
    arguments += ["--die-with-parent", "--new-session"]
    if disable_userns:
        arguments.append("--disable-userns")
    arguments += ["--perms", "0755", "--dir", "/etc", *_system()]
    arguments += ["--dev", "/dev", "--size", str(_SHM_BYTES), "--perms", "1777"]
    arguments += ["--tmpfs", "/dev/shm", "--remount-ro", "/dev", "--proc", "/proc"]
    arguments += ["--size", disk, "--perms", "1777", "--tmpfs", "/tmp"]
    arguments += ["--perms", "0700", "--dir", "/tmp/home"]
    arguments += ["--size", disk, "--perms", "0755", "--tmpfs", REPO]
    for mount in mounts:
        arguments += ["--bind" if mount.writable else "--ro-bind", mount.source, mount.target]
    for file in data:
        arguments += ["--perms", "0444", "--ro-bind-data", str(file.fd), file.target]
    arguments += ["--seccomp", str(seccomp_fd), "--info-fd", str(info_fd)]
    arguments += ["--remount-ro", "/", "--chdir", "/"]
    return arguments
