"""Starting the resident agent: its arguments, its limits and what it hands over."""

from __future__ import annotations

import _ctypes
import _socket
import os
import resource
import sys

from turnout.sandbox.inside.resident.loop import Resident
from turnout.sandbox.inside.resident.memory import MemoryWatch
from turnout.sandbox.inside.resident.processes import SIGCHLD, SIGKILL, Descent, Namespace

__all__ = ["main"]

_PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 4, 36
_SIG_BLOCK, _SIG_DFL, _SIGINT = 0, 0, 2
_SIGNAL_SET_BYTES = 128
_BACKLOG = 128


def _libc(name: str, *arguments: int | bytes | None) -> int:
    """Call a function of the C library; `ctypes` itself would double the time of the imports."""
    function = _ctypes.dlsym(_ctypes.dlopen("libc.so.6", os.RTLD_NOW), name)
    return int(_ctypes.call_function(function, arguments))


def _limit(words: dict[str, str]) -> None:
    """Limit this process and what it starts; what is not named is not limited.

    The limit of processes must be set in here: outside it would count the user's other processes.
    """
    for what, name in (
        (resource.RLIMIT_NPROC, "pids"),
        (resource.RLIMIT_NOFILE, "files"),
        (resource.RLIMIT_FSIZE, "file_bytes"),
        (resource.RLIMIT_DATA, "memory"),
    ):
        if name in words:
            resource.setrlimit(what, (int(words[name]), int(words[name])))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _child_ends() -> int:
    """Return a descriptor that tells of children that ended; no signal is taken otherwise.

    What runs inside may send any to the agent, and Python would answer some of them.
    """
    ends = (1 << (SIGCHLD - 1)).to_bytes(_SIGNAL_SET_BYTES, sys.byteorder)
    _libc("sigprocmask", _SIG_BLOCK, b"\xff" * _SIGNAL_SET_BYTES, None)
    return _libc("signalfd", -1, ends, os.O_CLOEXEC | os.O_NONBLOCK)


def _channel(words: dict[str, str]) -> tuple[int, int]:
    """Return the descriptors of the channel, such that no command inherits them."""
    first, second = int(words["in"]), int(words["out"])
    if first > 2:
        for fd in (first, second):
            os.set_inheritable(fd, False)
        return first, second
    pair = os.dup(first), os.dup(second)
    nothing = os.open("/dev/null", os.O_RDWR)
    for fd in (first, second):
        os.dup2(nothing, fd)
    os.close(nothing)
    return pair


def _hand_over_listener(way: str, port: int) -> None:
    """Pass a listening socket of this network to the host, which serves what connects to it."""
    kind, _, where = way.partition(":")
    if kind == "fd":
        host = _socket.socket(fileno=int(where))
    else:
        host = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        host.connect(where)
    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listener.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(_BACKLOG)
    number = listener.fileno().to_bytes(4, sys.byteorder)
    host.sendmsg([b"L"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, number)])
    listener.close()
    host.close()


def main(arguments: list[str]) -> None:
    """Serve the channel until it ends.

    Arguments are words `name=value`: `in` and `out` are the descriptors of the channel, equal for a
    socket. Limits, each left out where it does not hold: `pids`, `files`, `file_bytes`, `memory`
    (of each process). `root` is where the workspace is, `/repo` by itself. `egress=fd:N` or
    `egress=path:SOCKET` names where the listening socket of `port` is handed over. `watch=1` holds
    all processes together to `memory`. `alone=0` is for a process that is not process 1 of a
    namespace: it is trusted to be started by the host, and signals only what it started.
    """
    words = dict(word.split("=", 1) for word in arguments)
    alone = words.get("alone", "1") == "1"
    if alone and os.getpid() != 1:
        sys.exit("this runs only as process 1 of a sandbox")
    reader, writer = _channel(words)
    os.umask(0o022)
    _libc("prctl", _PR_SET_DUMPABLE, 0, 0, 0, 0)
    # Process 1 is spared what it has no handler for, and the interpreter has installed this one.
    _libc("signal", _SIGINT, _SIG_DFL)
    if not alone:
        _libc("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    _limit(words)
    if "egress" in words:
        _hand_over_listener(words["egress"], int(words["port"]))
    processes = Namespace() if alone else Descent()
    watch = MemoryWatch(processes, int(words["memory"])) if words.get("watch") == "1" else None
    root = os.path.realpath(os.fsencode(words.get("root", "/repo")))
    try:
        Resident((reader, writer, _child_ends()), root, processes, watch).serve()
    finally:
        processes.signal(SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1:])
