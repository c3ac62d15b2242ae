"""Starting bubblewrap: descriptors, identity and the process itself."""

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from turnout.errors import SandboxUnavailableError
from turnout.sandbox.base import Limits, Mount
from turnout.sandbox.walls import seccomp
from turnout.sandbox.walls.arguments import (
    FILES_INSIDE,
    INSIDE_UID,
    DataFile,
    bubblewrap_arguments,
)
from turnout.sandbox.walls.identity import Identity, choose_identity

__all__ = ["Bubblewrap", "Launched", "find_bubblewrap", "launch", "why_not"]

_CHILD_PID = re.compile(rb'"child-pid":\s*(\d+)\D')
_ACCOUNTS = {
    "/etc/passwd": (
        f"root:x:0:0::/:/bin/sh\nagent:x:{INSIDE_UID}:{INSIDE_UID}::/tmp/home:/bin/bash\n"
    ),
    "/etc/group": f"root:x:0:\nagent:x:{INSIDE_UID}:\n",
    "/etc/hosts": "127.0.0.1 localhost sandbox\n::1 localhost sandbox\n",
}
_NAMESPACES_MEND = (
    "Allow user namespaces: `sysctl -w user.max_user_namespaces=15000`, on Debian also "
    "`sysctl -w kernel.unprivileged_userns_clone=1`, on Ubuntu 24.04 or later "
    "`sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`; in a container start it with "
    "`--security-opt seccomp=unconfined --security-opt apparmor=unconfined`."
)


_ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
_STAGES = ("/media", "/srv", "/mnt", "/opt")
_STAGE = """
set -e
stage=$1 uid=$2 gid=$3 count=$4 number=0
shift 4
mount -t tmpfs -o mode=0711,nosuid,nodev turnout "$stage"
while [ "$number" -lt "$count" ]; do
    mkdir "$stage/$number"
    mount --bind "$1" "$stage/$number"
    shift
    number=$((number + 1))
done
exec setpriv --reuid "$uid" --regid "$gid" --clear-groups -- "$@"
"""


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """The program and what this version of it can do."""

    path: str
    disables_userns: bool
    """Takes `--disable-userns`: nothing inside can make a user namespace. Set-uid it does not."""


@dataclass(frozen=True, slots=True)
class Launched:
    """A bubblewrap that was started."""

    process: subprocess.Popen[bytes]
    info_fd: int
    """Where it says the pid of the process inside; the receiver closes it."""
    complaints_fd: int
    """A file with what it printed; the receiver closes it."""

    def child_pid(self) -> int | None:
        """Return the pid, seen from here, of process 1 inside; waits for bubblewrap's word."""
        said = b""
        while not (found := _CHILD_PID.search(said)):
            more = os.read(self.info_fd, 4096)
            if not more:
                return None
            said += more
        return int(found.group(1))

    def complaints(self) -> str:
        """Return what bubblewrap or the agent printed, for people."""
        return os.pread(self.complaints_fd, 4000, 0).decode(errors="backslashreplace").strip()

    def close(self) -> None:
        """Close the descriptors."""
        os.close(self.info_fd)
        os.close(self.complaints_fd)


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


def why_not(complaint: str) -> SandboxUnavailableError:
    """Return the error for a bubblewrap that did not start, with what would help."""
    text = complaint.splitlines()[-1] if complaint else "it printed nothing"
    hints = ("namespace", "uid map", "loopback", "Operation not permitted", "mount proc")
    mend = _NAMESPACES_MEND if any(hint in complaint for hint in hints) else ""
    return SandboxUnavailableError(f"The sandbox did not start: {text}.", mend=mend)


class _Descriptors:
    """Descriptors that live until bubblewrap has been started."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.numbers: list[int] = []

    def keep(self, fd: int) -> int:
        self._stack.callback(os.close, fd)
        self.numbers.append(fd)
        return fd

    def holding(self, data: bytes) -> int:
        fd = self.keep(os.memfd_create("turnout", os.MFD_CLOEXEC))
        with os.fdopen(os.dup(fd), "wb") as file:
            file.write(data)
        os.lseek(fd, 0, os.SEEK_SET)
        return fd


def _unreachable(path: Path) -> bool:
    """Whether a uid that owns nothing cannot get to a folder by its path."""
    return any(not parent.stat().st_mode & 0o001 for parent in path.resolve().parents)


def _staged(mounts: Sequence[Mount], identity: Identity) -> tuple[list[str], list[Mount]]:
    """Return how to start bubblewrap so that it reaches every mount, and where it finds them.

    Folders below one that only root may enter are shown elsewhere first, in a mount namespace that
    ends with the sandbox.
    """
    sources = [Path(mount.source).resolve() for mount in mounts]
    stage = next(
        (
            path
            for path in map(Path, _STAGES)
            if path.is_dir() and not any(source.is_relative_to(path) for source in sources)
        ),
        None,
    )
    if stage is None or not (unshare := shutil.which("unshare")):
        raise SandboxUnavailableError(
            "The state folder is below a folder that only root may enter.",
            mend="Set TURNOUT_HOME to a folder that every user may traverse.",
        )
    prefix = [unshare, "--mount", "--propagation", "private", "--", "/bin/sh", "-c", _STAGE, "sh"]
    prefix += [str(stage), str(identity.uid), str(identity.gid), str(len(mounts))]
    prefix += [str(source) for source in sources]
    return prefix, [replace(mount, source=f"{stage}/{n}") for n, mount in enumerate(mounts)]


def launch(
    bubblewrap: Bubblewrap,
    program: Sequence[str],
    *,
    machine: str,
    limits: Limits,
    mounts: Sequence[Mount],
    files: dict[str, bytes],
    channel_fd: int,
) -> Launched:
    """Start a program behind the walls; it inherits `channel_fd` and finds `files` read-only.

    As root the walls belong to a uid of their own, taken on before bubblewrap starts.
    """
    identity = choose_identity()
    prefix: list[str] = []
    if identity is not None:
        for mount in mounts:
            if mount.writable:
                os.chown(mount.source, identity.uid, identity.gid)
        if any(_unreachable(Path(mount.source)) for mount in mounts):
            prefix, mounts = _staged(mounts, identity)
    dropped = None if prefix else identity
    with ExitStack() as stack:
        descriptors = _Descriptors(stack)
        contents = {path: text.encode() for path, text in _ACCOUNTS.items()}
        contents |= {f"{FILES_INSIDE}/{name}": data for name, data in files.items()}
        data = [DataFile(descriptors.holding(body), path) for path, body in contents.items()]
        info_reader, info_writer = os.pipe()
        descriptors.keep(info_writer)
        arguments = bubblewrap_arguments(
            limits=limits,
            mounts=mounts,
            data=data,
            seccomp_fd=descriptors.holding(seccomp.program(machine)),
            info_fd=info_writer,
            disable_userns=bubblewrap.disables_userns,
        )
        complaints = os.memfd_create("turnout-complaints", os.MFD_CLOEXEC)
        process = subprocess.Popen(
            [*prefix, bubblewrap.path, *arguments, "--", *program],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=complaints,
            pass_fds=(channel_fd, *descriptors.numbers),
            env=_ENV,
            cwd="/",
            user=dropped.uid if dropped else None,
            group=dropped.gid if dropped else None,
            extra_groups=[] if dropped else None,
            # Ctrl-C in a terminal is for us to handle: the sandbox has to outlive it.
            start_new_session=True,
        )
    return Launched(process, info_reader, complaints)
