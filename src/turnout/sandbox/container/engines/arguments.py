"""The options of an engine for one container: all that it may, and nothing else."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from turnout.errors import SandboxUnavailableError
from turnout.sandbox.base import Limits, Mount
from turnout.sandbox.container.engines.engine import Engine
from turnout.sandbox.container.engines.user import User

__all__ = ["Attachment", "Container", "Tmpfs", "run_words"]

Attachment = Literal["direct", "piped", "survey"]
"""How we are connected to its main process.

`direct`: its standard input is ours, one socket for both ways; the engine's client ends once it
runs. `piped`: through the engine's client, which lives as long. `survey`: only its output is read.
"""

_SHM_BYTES = 64 << 20
_OUTSIDE = 2
"""Processes in the container's control group that are ours while it starts."""
_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")


@dataclass(frozen=True, slots=True)
class Tmpfs:
    """A folder in memory, empty at first."""

    target: str
    size: int
    mode: int


@dataclass(frozen=True, slots=True)
class Container:
    """One container to be started."""

    name: str
    label: str
    """`NAME=VALUE`, by which all of a state folder are found."""
    image: str
    argv: tuple[str, ...]
    """The first is a path inside; the image's own entry point is not used."""
    limits: Limits
    user: User
    profile: str
    """Host file with the system call filter."""
    mounts: tuple[Mount, ...] = ()
    tmpfs: tuple[Tmpfs, ...] = ()
    volume: tuple[str, ...] = ()
    """Where the volume of its name is shown, each the whole of it."""
    pid_file: str = ""
    """Host file for the pid of its main process; Podman alone writes it."""
    ulimits: tuple[str, ...] = ()
    """More of them, `NAME=SOFT:HARD`."""


def run_words(engine: Engine, container: Container, attachment: Attachment) -> list[str]:
    """Return the words after `run`; the last are those of the program."""
    user = container.user
    words = ["--rm", f"--name={container.name}", f"--label={container.label}", "--pull=never"]
    words += ["--network=none", "--ipc=private", "--cgroupns=private", "--hostname=sandbox"]
    words += [f"--user={user.uid}:{user.gid}", "--cap-drop=ALL", "--security-opt=no-new-privileges"]
    words += [f"--security-opt=seccomp={container.profile}", "--read-only", "--init=false"]
    words += ["--no-healthcheck", "--workdir=/", f"--shm-size={_SHM_BYTES}b"]
    if engine.labels:
        words.append("--security-opt=label=disable")
    words += _attached(attachment)
    words += _podman(engine, container) if engine.is_podman else _docker(engine)
    words += _limited(engine, container)
    words += _shown(engine, container)
    return [*words, f"--entrypoint={container.argv[0]}", container.image, *container.argv[1:]]


def _attached(attachment: Attachment) -> list[str]:
    if attachment == "direct":
        return ["--detach", "--log-driver=passthrough"]
    # What passes between us and the agent is in no log.
    words = ["--log-driver=none"]
    if attachment == "piped":
        words += ["--interactive", "--attach=stdin", "--attach=stdout", "--attach=stderr"]
    return words


def _podman(engine: Engine, container: Container) -> list[str]:
    words = ["--pid=private", "--uts=private", "--systemd=false", "--sdnotify=ignore"]
    words += ["--http-proxy=false", "--image-volume=ignore", "--no-hosts", "--passwd=false"]
    words += ["--read-only-tmpfs=false"]
    if engine.rootless:
        user = container.user
        words.append(f"--userns=keep-id:uid={user.uid},gid={user.gid}")
    else:
        words.append("--userns=host")
    if not engine.limits:
        # It would be the host's, read-only.
        words.append("--security-opt=mask=/sys/fs/cgroup")
    if container.pid_file:
        words.append(f"--pidfile={container.pid_file}")
    return words


def _docker(engine: Engine) -> list[str]:
    # The client would hand in the proxies of its own configuration, with their passwords.
    names = [*_PROXIES, *(name.upper() for name in _PROXIES)]
    return [*(f"--env={name}=" for name in names), *([] if engine.rootless else ["--userns=host"])]


def _limited(engine: Engine, container: Container) -> list[str]:
    """Limit it; what a run writes lives in memory, which is charged to the container as well."""
    limits = container.limits
    ulimits = [
        f"nofile={limits.open_files}:{limits.open_files}",
        f"fsize={limits.file_bytes}:{limits.file_bytes}",
        "core=0:0",
    ]
    processes = container.user.most_processes(limits.pids)
    if processes is not None:
        ulimits.append(f"nproc={processes}:{processes}")
    words = [f"--ulimit={each}" for each in (*ulimits, *container.ulimits)]
    if engine.limits:
        memory = limits.memory_bytes + limits.disk_bytes
        # Docker refuses more than there are.
        cpus = min(limits.cpus, os.cpu_count() or 1)
        words += [f"--memory={memory}b", f"--memory-swap={memory}b", f"--cpus={cpus:g}"]
        words.append(f"--pids-limit={limits.pids + _OUTSIDE}")
    return words


def _shown(engine: Engine, container: Container) -> list[str]:
    words = []
    for mount in container.mounts:
        fields = ["type=bind", f"source={mount.source}", f"destination={mount.target}"]
        words.append(_mount([*fields, *([] if mount.writable else ["readonly"])]))
    for target in container.volume:
        fields = ["type=volume", f"source={container.name}", f"destination={target}"]
        # Copying what the image holds there into the volume would be the engine's default.
        words.append(_mount([*fields, *([] if engine.is_podman else ["volume-nocopy"])]))
    for each in container.tmpfs:
        options = f"rw,exec,nosuid,nodev,size={each.size},mode={each.mode:o}"
        own = "notmpcopyup" if engine.is_podman else f"nr_inodes={container.limits.inodes}"
        words.append(f"--tmpfs={each.target}:{options},{own}")
    return words


def _mount(fields: Sequence[str]) -> str:
    """Engines read a mount as a line of comma-separated values."""
    if any(set(field) & {",", '"', "\n"} for field in fields):
        raise SandboxUnavailableError(
            "The path of the state folder has a comma or a quote in it.",
            mend="Set TURNOUT_HOME to a folder without.",
        )
    return f"--mount={','.join(fields)}"
