"""Finding, starting and signalling processes inside the sandbox."""

from __future__ import annotations

import errno
import os

__all__ = [
    "SIGCHLD",
    "SIGCONT",
    "SIGKILL",
    "SIGSTOP",
    "SIGTERM",
    "Descent",
    "Namespace",
    "find_program",
    "protect",
    "signal_each",
]

SIGKILL, SIGTERM, SIGCHLD, SIGCONT, SIGSTOP = 9, 15, 17, 18, 19

_ROUNDS = 100


def find_program(name: bytes, search: bytes) -> bytes:
    """Return the path of a program as `execvp` would find it."""
    if b"/" in name:
        return name
    for folder in search.split(b":"):
        path = os.path.join(folder or b".", name)
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    raise FileNotFoundError(errno.ENOENT, "command not found", os.fsdecode(name))


def protect(pid: int) -> None:
    """Let a process and all that it starts die before the agent does when memory runs out."""
    try:
        with open(f"/proc/{pid}/oom_score_adj", "wb") as file:
            file.write(b"1000")
    except OSError:
        return


def signal_each(pids: list[int], number: int) -> None:
    """Send a signal to processes that may be gone."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def _fields(pid: int) -> list[bytes]:
    """Return what the kernel tells of a process from its state on; nothing where it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def _table() -> dict[int, tuple[int, int, int]]:
    """Return parent, process group and session of every live process but this one."""
    rows = {}
    own = os.getpid()
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        fields = [] if pid == own else _fields(pid)
        # One whose first thread has ended lives on in its others.
        if len(fields) > 17 and (fields[0] not in (b"Z", b"X") or int(fields[17]) > 1):
            rows[pid] = (int(fields[1]), int(fields[2]), int(fields[3]))
    return rows


def _marked(pid: int, mark: bytes) -> bool:
    """Whether a process inherited the mark of a command."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return mark in file.read() + b"\0"
    except OSError:
        return False


def _with_children(found: set[int], rows: dict[int, tuple[int, int, int]]) -> set[int]:
    """Return these processes and all that descend from them."""
    found = set(found)
    while True:
        children = {pid for pid, row in rows.items() if row[0] in found} - found
        if not children:
            return found
        found |= children


class Namespace:
    """Every process but this one, which is process 1 of a namespace of its own."""

    def rows(self) -> dict[int, tuple[int, int, int]]:
        """Return parent, process group and session of each that lives."""
        return _table()

    def spent(self) -> dict[int, int]:
        """Return the ticks of CPU that each has used."""
        told = {pid: _fields(pid) for pid in self.rows()}
        return {pid: int(one[11]) + int(one[12]) for pid, one in told.items() if len(one) > 12}

    def signal(self, number: int) -> None:
        """Signal them all at once: the one way that no process escapes."""
        signal_each([-1], number)

    def family(self, leader: int, mark: bytes) -> list[int]:
        """Return those of one command by session, inherited mark or descent: best effort."""
        rows = self.rows()
        found = {
            pid
            for pid, (_, group, session) in rows.items()
            if leader in (pid, group, session) or _marked(pid, mark)
        }
        return list(_with_children(found, rows))


class Descent(Namespace):
    """Every process that descends from this one.

    It has to be the one that orphans are handed to. Others on the machine are never signalled.
    """

    def rows(self) -> dict[int, tuple[int, int, int]]:
        """Return parent, process group and session of each that lives."""
        if not _has_children():
            return {}
        rows = _table()
        own = os.getpid()
        return {pid: rows[pid] for pid in _with_children({own}, rows) - {own}}

    def signal(self, number: int) -> None:
        """Signal them, and those that they start meanwhile, until there is none that was not."""
        if number == SIGKILL:
            self.signal(SIGSTOP)
        done: set[int] = set()
        for _ in range(_ROUNDS):
            new = set(self.rows()) - done
            if not new:
                return
            signal_each(list(new), number)
            done |= new


def _has_children() -> bool:
    """Whether any process is left to wait for, one that ended included."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
