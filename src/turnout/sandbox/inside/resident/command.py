"""A running command inside the sandbox."""

from __future__ import annotations

import os
import time

from turnout.sandbox.inside.resident.files import located
from turnout.sandbox.inside.resident.processes import find_program
from turnout.sandbox.inside.wire import (
    DONE,
    EXITED,
    OUT_OF_MEMORY,
    STDERR,
    STDOUT,
    WINDOW,
    Stream,
)

__all__ = ["Command", "launch"]

_SIGPIPE, _SIGXFSZ = 13, 25
_NEVER = 1e12


class Command:
    """A command, its streams and what is to become of it."""

    __slots__ = (
        "background",
        "cpu",
        "deadline",
        "drain_until",
        "frozen_at",
        "id",
        "input_ends",
        "kill_at",
        "limit",
        "peak",
        "pending",
        "pid",
        "reason",
        "started",
        "starved",
        "status",
        "stdin",
        "streams",
        "window",
    )

    def __init__(self, command_id: int, timeout: float, limit: int, background: bool) -> None:
        self.id = command_id
        self.started = time.monotonic()
        self.deadline = self.started + timeout
        self.limit = limit
        self.background = background
        self.kill_at = 0.0
        self.drain_until = 0.0
        self.frozen_at = 0.0
        self.reason = EXITED
        self.starved = False
        self.status = -1
        self.cpu = 0.0
        self.peak = 0
        self.pid = 0
        self.stdin = -1
        self.input_ends = False
        self.pending = bytearray()
        self.streams: list[Stream] = []
        self.window = WINDOW

    @property
    def mark(self) -> bytes:
        """The variable that its processes inherit."""
        return b"TURNOUT_COMMAND=%d\0" % self.id

    @property
    def blocked(self) -> bool:
        """Whether its raw output waits for the host."""
        return self.streams[0].raw and self.window <= 0

    def due(self) -> float:
        """Return when it must be looked at again."""
        if self.status >= 0:
            return self.drain_until
        if self.frozen_at:
            return _NEVER
        if self.reason == EXITED:
            return self.deadline
        return self.kill_at or _NEVER

    def freeze(self, now: float) -> None:
        """Let its time stand still."""
        self.frozen_at = self.frozen_at or now

    def thaw(self, now: float) -> None:
        """Let its time go on."""
        if self.frozen_at:
            self.deadline += now - self.frozen_at
            self.kill_at += now - self.frozen_at if self.kill_at else 0.0
            self.frozen_at = 0.0

    def printed(self) -> int:
        """Return the bytes that count towards its output limit."""
        return sum(stream.total for stream in self.streams if not stream.raw)

    def report(self) -> bytes:
        """Return the payload that tells of its end."""
        out, err = self.streams
        killed = os.WIFSIGNALED(self.status)
        starved = self.starved and self.reason == EXITED and self.status != 0
        return DONE.pack(
            OUT_OF_MEMORY if starved else self.reason,
            -1 if killed else os.WEXITSTATUS(self.status),
            os.WTERMSIG(self.status) if killed else 0,
            time.monotonic() - self.started,
            out.total,
            err.total,
            out.omitted(),
            err.omitted(),
            self.cpu,
            self.peak,
        )

    def write_input(self) -> int:
        """Write what the pipe takes; returns the bytes that are no longer pending."""
        taken = 0
        try:
            while self.pending:
                written = os.write(self.stdin, self.pending[:65536])
                del self.pending[:written]
                taken += written
        except BlockingIOError:
            return taken
        except OSError:
            taken += len(self.pending)
            self.close_input()
        if self.input_ends:
            self.close_input()
        return taken

    def close_input(self) -> None:
        """Close its standard input."""
        self.pending.clear()
        if self.stdin >= 0:
            os.close(self.stdin)
            self.stdin = -1


def launch(command_id: int, fields: list[bytes], root: bytes) -> Command:
    """Start a command as the host described it; `OSError` where it cannot be started."""
    timeout, head, tail, limit, flags, cwd, count = fields[:7]
    argv = fields[7 : 7 + int(count)]
    variables = [field.partition(b"=") for field in fields[7 + int(count) :]]
    env = {name: value for name, _, value in variables}
    env[b"TURNOUT_COMMAND"] = b"%d" % command_id
    command = Command(command_id, float(timeout), int(limit), b"b" in flags)
    theirs: list[int] = []
    try:
        if b"i" in flags:
            reader, command.stdin = os.pipe()
            os.set_blocking(command.stdin, False)
        else:
            reader = os.open("/dev/null", os.O_RDONLY)
        theirs.append(reader)
        for kind in (STDOUT, STDERR):
            fd, writer = os.pipe()
            os.set_blocking(fd, False)
            theirs.append(writer)
            raw = b"r" in flags and kind == STDOUT
            command.streams.append(Stream(fd, kind, int(head), int(tail), raw))
        os.chdir(located(root, cwd))
        command.pid = os.posix_spawn(
            find_program(argv[0], env.get(b"PATH", b"/usr/bin:/bin")),
            argv,
            env,
            file_actions=[(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(theirs)],
            setsid=True,
            setsigmask=[],
            setsigdef=[_SIGPIPE, _SIGXFSZ],
        )
    except OSError:
        command.close_input()
        for stream in command.streams:
            os.close(stream.fd)
        raise
    finally:
        os.chdir("/")
        for fd in theirs:
            os.close(fd)
    return command
