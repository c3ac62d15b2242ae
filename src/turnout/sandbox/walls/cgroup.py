"""Control groups: memory, processes and CPU of a whole sandbox, and its end.

Version 2 is used where a parent group with the needed controllers is writable, version 1 where its
hierarchies are; where neither is, a sandbox has the limits of single processes alone, and says so.
A hierarchy of version 2 without controllers still ends a whole group at once, which no process
escapes by forking: it is used for that beside version 1.

No freezer is used. What that of version 1 froze cannot be killed, so it would outlive a service
that dies; and that of version 2 stops the agent too, which is needed to take a snapshot. The agent
stops everything else by signals that no process can refuse.
"""

import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from turnout.errors import SandboxUnavailableError
from turnout.sandbox.base import Limits

__all__ = ["Cgroup", "CgroupParents", "find_parents"]

_V2_NEEDED = ("memory", "pids")
_V2_WANTED = ("memory", "pids", "cpu")
_V1_NEEDED = ("memory", "pids")
_V1_WANTED = ("memory", "pids", "cpu", "cpuacct")
_PERIOD_MICROSECONDS = 100_000
_UNIFIED = "unified"
_OWN_LEAF = "turnout-service"
_OUTSIDE = 2
"""Processes in the groups that are ours: bubblewrap, and one while it is being started."""


@dataclass(frozen=True, slots=True)
class CgroupParents:
    """The groups beneath which a sandbox's own group is made."""

    version: int
    """2, 1, or 0 where none is writable."""
    parents: tuple[tuple[str, Path], ...] = ()
    """By controller; version 2 has one entry named `unified`."""
    reason: str = ""
    """Why there is none, or what is missing."""
    ending: Path | None = None
    """Beside version 1: where groups of version 2 can be made, which are ended at once."""

    @property
    def advice(self) -> str:
        """What does not hold without them, and the mend; empty where they are there."""
        if self.version:
            return ""
        return (
            f"{self.reason}: memory, processes and CPU of a sandbox are limited per process only. "
            "Run as root, or by `systemd-run --user --scope -p Delegate=yes turnout ...`."
        )

    @property
    def name(self) -> str:
        """As it appears in the name of the walls."""
        return f"cgroup-v{self.version}" if self.version else "rlimits"

    def folders(self, name: str) -> dict[str, Path]:
        """Return where the groups of a sandbox of this name are made, one folder per hierarchy."""
        found = {key: path / name for key, path in self.parents}
        if self.ending is not None:
            found[_UNIFIED] = self.ending / name
        return found


def _write(path: Path, value: str | int) -> None:
    with path.open("w") as file:
        file.write(str(value))


def _own_paths(membership: str) -> dict[str, str]:
    """Return this process's group by controller; the unified hierarchy is the empty name."""
    paths = {}
    for line in membership.splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            paths[controller] = path
    return paths


def _mounted(mountinfo: str) -> dict[str, tuple[Path, str]]:
    """Return mount point and root of each hierarchy by controller; unified is the empty name."""
    found = {}
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split()
        kind, _, options = right.split(maxsplit=2)
        if kind == "cgroup2":
            found[""] = (Path(fields[4]), fields[3])
        elif kind == "cgroup":
            for option in options.split(","):
                found.setdefault(option, (Path(fields[4]), fields[3]))
    return found


def _folder(controller: str, own: dict[str, str], mounted: dict[str, tuple[Path, str]]) -> Path:
    """Return the folder of this process's group in one hierarchy."""
    point, root = mounted[controller]
    path = own.get(controller, "/")
    relative = path.removeprefix(root) if root != "/" else path
    return point / relative.strip("/")


def _writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK) and os.access(folder / "cgroup.procs", os.W_OK)


def _words(path: Path) -> set[str]:
    try:
        return set(path.read_text().split())
    except OSError:
        return set()


def _enable_v2(parent: Path) -> bool:
    """Make the controllers available to children of `parent`; True where they are.

    A group with processes cannot hand controllers on, so where the service alone is in its
    delegated group it moves into a leaf of it.
    """
    if not set(_V2_NEEDED) <= _words(parent / "cgroup.controllers"):
        return False
    enabled = parent / "cgroup.subtree_control"
    if set(_V2_NEEDED) <= _words(enabled):
        return True
    try:
        if _words(parent / "cgroup.procs") == {str(os.getpid())}:
            leaf = parent / _OWN_LEAF
            leaf.mkdir(exist_ok=True)
            _write(leaf / "cgroup.procs", os.getpid())
        _write(enabled, " ".join(f"+{name}" for name in _V2_NEEDED))
    except OSError:
        return False
    with suppress(OSError):
        _write(enabled, "+cpu")
    return True


def find_parents(
    membership: Path = Path("/proc/self/cgroup"), mountinfo: Path = Path("/proc/self/mountinfo")
) -> CgroupParents:
    """Find where groups can be made; may move this process into a leaf of its delegated group."""
    try:
        own = _own_paths(membership.read_text())
        mounted = _mounted(mountinfo.read_text())
    except (OSError, ValueError) as error:
        return CgroupParents(0, reason=f"control groups cannot be read: {error}")
    ending = None
    if "" in mounted:
        here = _folder("", own, mounted)
        top = mounted[""][0]
        candidates = [here.parent, here] if here.name == _OWN_LEAF else [here, top]
        for parent in filter(_writable, candidates):
            if _enable_v2(parent):
                return CgroupParents(2, ((_UNIFIED, parent),))
            ending = ending or parent
    found = [
        (name, _folder(name, own, mounted))
        for name in _V1_WANTED
        if name in mounted and _writable(_folder(name, own, mounted))
    ]
    if set(_V1_NEEDED) <= {name for name, _ in found}:
        return CgroupParents(1, tuple(found), ending=ending)
    reason = "no control group with memory and pids is writable"
    return CgroupParents(0, reason=reason, ending=ending)


class Cgroup:
    """The groups of one sandbox, one folder per hierarchy."""

    def __init__(self, version: int, folders: dict[str, Path]) -> None:
        self._version = version
        self._folders = folders

    @classmethod
    def make(cls, parents: CgroupParents, name: str, limits: Limits) -> "Cgroup":
        """Make the groups and set their limits.

        What a run writes lives in memory and is charged to the group, so its memory limit is what
        processes and files may use together.
        """
        group = cls(parents.version, parents.folders(name))
        try:
            group._limit(limits)
        except OSError as error:
            group.remove()
            raise SandboxUnavailableError(
                f"Its control group could not be made: {error}.",
                mend="Remove groups named turnout-* that are left in /sys/fs/cgroup.",
            ) from None
        return group

    def _limit(self, limits: Limits) -> None:
        for folder in self._folders.values():
            folder.mkdir()
        memory = limits.memory_bytes + limits.disk_bytes
        quota = int(limits.cpus * _PERIOD_MICROSECONDS)
        if self._version == 2:
            self._set(_UNIFIED, "memory.max", memory)
            self._set(_UNIFIED, "pids.max", limits.pids + _OUTSIDE)
            self._try(_UNIFIED, "memory.swap.max", 0)
            self._try(_UNIFIED, "cpu.max", f"{quota} {_PERIOD_MICROSECONDS}")
        elif self._version == 1:
            self._set("memory", "memory.limit_in_bytes", memory)
            self._set("pids", "pids.max", limits.pids + _OUTSIDE)
            self._try("memory", "memory.memsw.limit_in_bytes", memory)
            self._try("cpu", "cpu.cfs_period_us", _PERIOD_MICROSECONDS)
            self._try("cpu", "cpu.cfs_quota_us", quota)

    @classmethod
    def around(cls, pid: int) -> "Cgroup":
        """Return the groups that a process is in and we are not; they are not ours to limit."""
        try:
            theirs = _own_paths(Path("/proc", str(pid), "cgroup").read_text())
            ours = _own_paths(Path("/proc/self/cgroup").read_text())
            mounted = _mounted(Path("/proc/self/mountinfo").read_text())
        except (OSError, ValueError):
            return cls(0, {})
        named = {
            name: _folder(name, theirs, mounted)
            for name in ("", *_V1_WANTED)
            if name in mounted and name in theirs and theirs[name] != ours.get(name)
        }
        unified = named.pop("", None)
        if named or unified is None:
            return cls(1, named)
        return cls(2, {"unified": unified})

    @classmethod
    def found(cls, folders: list[str]) -> "Cgroup":
        """Return the groups that an earlier service left behind."""
        return cls(0, {path: Path(path) for path in folders})

    def _set(self, key: str, file: str, value: str | int) -> None:
        _write(self._folders[key] / file, value)

    def _try(self, key: str, file: str, value: str | int) -> None:
        with suppress(OSError, KeyError):
            self._set(key, file, value)

    @property
    def entrances(self) -> list[str]:
        """Files that a process writes `0` to in order to be in, with what it starts afterwards."""
        return [str(path / "cgroup.procs") for path in self._folders.values()]

    def _number(self, key: str, file: str, field: str = "") -> int | None:
        """Return a number of a file: its only one, or that which follows `field`."""
        try:
            words = (self._folders[key] / file).read_text().split()
            return int(words[words.index(field) + 1] if field else words[0])
        except (OSError, KeyError, ValueError, IndexError):
            return None

    def oom_kills(self) -> int:
        """Return how many processes were ended because memory ran out."""
        if self._version == 2:
            return self._number(_UNIFIED, "memory.events", "oom_kill") or 0
        return self._number("memory", "memory.oom_control", "oom_kill") or 0

    def cpu_seconds(self) -> float | None:
        """Return the CPU time used so far; None where it is not counted."""
        if self._version == 2:
            micros = self._number(_UNIFIED, "cpu.stat", "usage_usec")
            return None if micros is None else micros / 1e6
        nanos = self._number("cpuacct", "cpuacct.usage")
        return None if nanos is None else nanos / 1e9

    def peak_memory_bytes(self) -> int | None:
        """Return the most memory in use at once; None where it is not counted."""
        if self._version == 2:
            return self._number(_UNIFIED, "memory.peak")
        return self._number("memory", "memory.max_usage_in_bytes")

    def kill(self) -> None:
        """End every process in the groups."""
        folders = list(self._folders.values())
        at_once = [folder for folder in folders if (folder / "cgroup.kill").exists()]
        for folder in at_once:
            with suppress(OSError):
                _write(folder / "cgroup.kill", 1)
        for folder in () if at_once else folders:
            for pid in _words(folder / "cgroup.procs"):
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)

    def remove(self, timeout: float = 2.0) -> bool:
        """Remove the groups once their processes are gone; False where that took too long."""
        deadline = time.monotonic() + timeout
        left = list(self._folders.values())
        while left:
            for folder in list(left):
                with suppress(OSError):
                    folder.rmdir()
                if not folder.exists():
                    left.remove(folder)
            if left:
                if time.monotonic() > deadline:
                    return False
                self.kill()
                time.sleep(0.002)
        return True
