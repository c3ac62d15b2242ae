"""Finding, starting and signalling processes inside the sandbox."""

from __future__ import annotations

import errno
import os

__all__ = ["SIGCHLD", "SIGKILL", "SIGTERM", "family", "find_program", "protect", "signal_each"]

SIGKILL, SIGTERM, SIGCHLD = 9, 15, 17


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


def _table() -> dict[int, tuple[int, int, int]]:
    """Return parent, process group and session of every live process but this one."""
    rows = {}
    for name in os.listdir("/proc"):
        if not name.isdigit() or name == "1":
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if len(fields) > 3 and fields[0] not in (b"Z", b"X"):
            rows[int(name)] = (int(fields[1]), int(fields[2]), int(fields[3]))
    return rows


def _marked(pid: int, mark: bytes) -> bool:
    """Whether a process inherited the mark of a command."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return mark in file.read() + b"\0"
    except OSError:
        return False


def family(leader: int, mark: bytes) -> list[int]:
    """Return processes of one command by session, inherited mark or descent: best effort."""
    rows = _table()
    found = {
        pid
        for pid, (_, group, session) in rows.items()
        if leader in (pid, group, session) or _marked(pid, mark)
    }
    while True:
        children = {pid for pid, row in rows.items() if row[0] in found} - found
        if not children:
            return list(found)
        found |= children
