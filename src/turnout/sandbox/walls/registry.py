"""Which sandboxes there are, on disk, so that a crash of the service leaves nothing behind."""

import fcntl
import json
import os
import secrets
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from turnout.core.ids import RunId
from turnout.sandbox.walls.cgroup import Cgroup

__all__ = ["Entry", "Registry"]

_MOST_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Entry:
    """One sandbox; its file is locked for as long as the service that made it lives."""

    name: str
    """Unique among all sandboxes of the machine; its control groups bear it too."""
    path: Path
    fd: int

    def note(self, run_id: RunId, cgroups: Iterable[Path]) -> None:
        """Write down what must be removed if the service cannot do it any more."""
        data = json.dumps({"run": run_id, "cgroups": [str(path) for path in cgroups]}).encode()
        os.pwrite(self.fd, data, 0)
        os.ftruncate(self.fd, len(data))

    def settle(self, *, removed: bool) -> None:
        """Forget the sandbox, or leave it to `reap` where something of it could not be removed."""
        if removed:
            self.path.unlink(missing_ok=True)
        os.close(self.fd)


class Registry:
    """The folder that has a file for each sandbox."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self) -> Entry:
        """Register a sandbox before anything of it is made."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        while True:
            name = f"turnout-{secrets.token_hex(8)}"
            path = self._folder / f"{name}.json"
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(fd, fcntl.LOCK_EX)
            # Another service may have reaped it before it was locked.
            if path.exists():
                return Entry(name, path, fd)
            os.close(fd)

    def reap(self, known: frozenset[RunId]) -> tuple[RunId, ...]:
        """Remove what dead services left behind of runs that are not known; returns those runs."""
        reaped = set()
        for path in sorted(self._folder.glob("turnout-*.json")):
            with suppress(OSError), path.open("r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                run_id, folders = _read(file.read())
                if run_id in known:
                    continue
                group = Cgroup.found(folders)
                group.kill()
                if group.remove():
                    path.unlink(missing_ok=True)
                    reaped.add(run_id)
        return tuple(sorted(reaped - {RunId("")}))

    def names(self) -> frozenset[str]:
        """Return the names of all sandboxes that are registered."""
        return frozenset(path.stem for path in self._folder.glob("turnout-*.json"))

    def orphans(self, known: frozenset[RunId]) -> list[tuple[Entry, RunId]]:
        """Take over what dead services left behind of runs that are not known, to be settled."""
        found = []
        for path in sorted(self._folder.glob("turnout-*.json")):
            with suppress(OSError), ExitStack() as undo:
                fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
                undo.callback(os.close, fd)
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                run_id, _ = _read(os.pread(fd, _MOST_BYTES, 0))
                if run_id not in known:
                    found.append((Entry(path.stem, path, fd), run_id))
                    undo.pop_all()
        return found


def _read(data: bytes) -> tuple[RunId, list[str]]:
    """Return run and control groups of an entry; nothing where the service died in between."""
    try:
        fields = json.loads(data)
        return RunId(str(fields["run"])), [str(path) for path in fields["cgroups"]]
    except (ValueError, KeyError, TypeError):
        return RunId(""), []
