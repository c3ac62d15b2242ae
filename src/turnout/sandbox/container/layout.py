"""What a container is shown, and where on the host that lies."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from turnout.sandbox.base import BASE_ENV, REPO, WORKSPACE, Limits, Mount
from turnout.sandbox.container.engines.arguments import Tmpfs
from turnout.sandbox.container.engines.user import User
from turnout.sandbox.walls.arguments import FILES_INSIDE
from turnout.sandbox.walls.contents import Contents
from turnout.sandbox.walls.identity import Identity
from turnout.sandbox.walls.launch import CHANGES_INSIDE, empty_plan
from turnout.sandbox.walls.stage import BELOW, CHANGES, Overlay, Plan
from turnout.sandbox.workspace.folders import private, readable

__all__ = ["SOCKET_INSIDE", "OwnFolder", "Places", "hand_over", "staged", "unstaged"]

SOCKET_INSIDE = f"{FILES_INSIDE}/egress.sock"
"""Where the agent hands its listening socket over."""

_ETC = "etc"
_TMP = BASE_ENV["TMPDIR"]
_SHM = str(Path("/dev", "shm"))


class OwnFolder:
    """The host's folder of one container: files that it is shown, and none that it could write."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._shown = path / "shown"

    def fill(self, programs: Mapping[str, bytes], user: User) -> None:
        """Lay everything out."""
        private(self._path)
        readable(self._shown)
        # Further mounts need a folder to be on, and this one will be read-only.
        readable(self._shown / Path(CHANGES_INSIDE).name)
        for name, data in programs.items():
            self.add(name, data)
        folder = readable(self._path / _ETC)
        for name, text in _system_files(user).items():
            _write(folder / name, text.encode())

    def add(self, name: str, data: bytes) -> None:
        """Show another file below `FILES_INSIDE`, also in a container that runs already."""
        _write(self._shown / name, data)

    @property
    def socket(self) -> Path:
        """Where the host listens for what is handed over."""
        return self._shown / Path(SOCKET_INSIDE).name

    @property
    def pid_file(self) -> Path:
        """Where the engine tells the pid of the main process."""
        return self._path / "pid"

    @property
    def mounts(self) -> list[Mount]:
        """How it is shown."""
        names = sorted(each.name for each in (self._path / _ETC).iterdir())
        etc = [Mount(str(self._path / _ETC / name), f"/etc/{name}") for name in names]
        return [Mount(str(self._shown), FILES_INSIDE), *etc]

    def remove(self) -> None:
        """Remove it."""
        shutil.rmtree(self._path, ignore_errors=True)


def _system_files(user: User) -> dict[str, str]:
    """Return what programs want to know of users and names; nothing of the host is in it."""
    accounts = f"root:x:0:0::/:/bin/sh\nagent:x:{user.uid}:{user.gid}::/tmp/home:/bin/bash\n"
    return {
        "passwd": accounts,
        "group": f"root:x:0:\nagent:x:{user.gid}:\n",
        "hosts": "127.0.0.1 localhost sandbox\n::1 localhost sandbox\n",
        "hostname": "sandbox\n",
        "resolv.conf": "",
    }


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    path.chmod(0o444)


@dataclass(frozen=True, slots=True)
class Places:
    """Where a container finds what it is shown."""

    plan: Plan
    """The stage that is laid out first, without the program; none where it has no folder."""
    mounts: tuple[Mount, ...]
    tmpfs: tuple[Tmpfs, ...] = ()
    volume: tuple[str, ...] = ()
    """Where a volume with the workspace is shown."""


def staged(folder: Path, contents: Contents, limits: Limits, user: User) -> Places:
    """Lay everything out in a mount namespace, from which the engine takes it over."""
    stage = private(folder)
    trees = contents.trees
    plan = empty_plan(limits, Identity(user.uid, user.gid), ())
    inner = [(path.lstrip("/"), 0o755) for path in _above(contents.mounts)]
    folders = [*plan.folders, *inner]
    mounts = list(contents.mounts)
    for tree in trees:
        mounts.append(Mount(f"{stage}/{BELOW}/{tree.name}", tree.below))
        if tree.target != REPO:
            mounts.append(Mount(f"{stage}/{tree.name}", tree.target, writable=True))
    if trees:
        mounts.append(Mount(f"{stage}/{CHANGES}", CHANGES_INSIDE))
    repo = REPO.strip("/")
    if all(tree.target != REPO for tree in trees):
        folders.append((repo, 0o755))
    named = ((repo, REPO), (repo, WORKSPACE), ("tmp", _TMP), ("shm", _SHM))
    mounts += [Mount(f"{stage}/{name}", target, writable=True) for name, target in named]
    plan = plan._replace(
        stage=str(stage),
        folders=folders,
        overlays=[Overlay(tree.name, list(tree.lowers)) for tree in trees],
        drops=False,
    )
    return Places(plan, tuple(mounts))


def unstaged(contents: Contents, limits: Limits) -> Places:
    """Let the engine make a volume and folders in memory."""
    plan = empty_plan(limits, None, ())._replace(stage="", folders=[])
    writable = (_TMP, *_above(contents.mounts))
    tmpfs = tuple(Tmpfs(target, limits.disk_bytes, 0o1777) for target in writable)
    return Places(plan, contents.mounts, tmpfs, (REPO, WORKSPACE))


def _above(mounts: tuple[Mount, ...]) -> list[str]:
    """Return the folders between `/tmp` and what is mounted below it, outermost first.

    An engine would make them as root's.
    """
    parents = {
        str(parent)
        for mount in mounts
        for parent in PurePosixPath(mount.target).parents
        if parent.is_relative_to(_TMP) and parent != PurePosixPath(_TMP)
    }
    return sorted(parents)


def hand_over(mounts: tuple[Mount, ...], user: User) -> None:
    """Give the source folders of writable mounts to the user of a container, as root."""
    if os.geteuid() == 0:
        for mount in mounts:
            if mount.writable:
                os.chown(mount.source, user.uid, user.gid)
