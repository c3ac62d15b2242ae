"""The loop of the resident agent.

The agent owns nothing worth stealing: whoever takes it over from within gains a channel whose every
frame the host distrusts anyway. Its imports are few, and `signal`, `socket` and `json` are not
among them, because each would add milliseconds to the start of every sandbox.
"""

from __future__ import annotations

import os
import select
import time

from turnout.sandbox.inside.resident.command import Command, launch
from turnout.sandbox.inside.resident.files import Files, refusal_text
from turnout.sandbox.inside.resident.memory import MemoryWatch
from turnout.sandbox.inside.resident.processes import (
    SIGCONT,
    SIGKILL,
    SIGSTOP,
    SIGTERM,
    Namespace,
    protect,
    signal_each,
)
from turnout.sandbox.inside.resident.stillness import Stillness
from turnout.sandbox.inside.wire import (
    CANCEL,
    CANCELLED,
    CREDIT,
    CREDIT_FRAME,
    DONE,
    DONE_FRAME,
    DRAIN_SECONDS,
    EXEC,
    EXITED,
    FRAME_COST,
    GRACE_SECONDS,
    HEADER,
    HELLO,
    INPUT,
    KILL_ALL,
    MAX_FRAME,
    NOT_STARTED,
    OUTPUT_LIMIT,
    PAUSE,
    REPLY,
    RESUME,
    TIMEOUT,
    Sender,
    Stream,
)

__all__ = ["Resident"]

_CHUNK = 1 << 18
_SETTLE_SECONDS = 1.0
_LONGEST_WAIT = 3600.0
_NOTHING = (0, 0, 0, 0, 0, 0, 0, 0)


class Resident:
    """Serves the channel and watches the commands."""

    def __init__(
        self,
        descriptors: tuple[int, int, int],
        root: bytes,
        processes: Namespace,
        watch: MemoryWatch | None,
    ) -> None:
        """Take the channel's two descriptors and one that tells of children that ended."""
        self._channel, writer, self._child_ends = descriptors
        self._root = root
        self._processes = processes
        self._watched = watch
        self._stillness = Stillness(processes)
        self._commands: dict[int, Command] = {}
        self._sender = Sender(writer)
        self._files = Files(self._sender, root)
        self._readers: dict[int, tuple[Command, Stream]] = {}
        self._writers: dict[int, Command] = {}
        self._leftovers: set[int] = set()
        self._strays_allowed = False
        self._frozen = False
        self._received = bytearray()
        self._poll = select.epoll()
        self._poll.register(self._channel, select.EPOLLIN)
        self._poll.register(self._child_ends, select.EPOLLIN)

    def serve(self) -> None:
        """Serve until the channel ends."""
        self._sender.send(HELLO, 0)
        while True:
            now = time.monotonic()
            for command in list(self._commands.values()):
                self._watch(command, now)
            for fd, _ in self._poll.poll(self._patience(now)):
                if fd == self._channel:
                    if not self._receive():
                        return
                elif fd == self._child_ends:
                    _empty(self._child_ends)
                    self._reap()
                elif fd in self._readers:
                    self._pump(*self._readers[fd])
                elif fd in self._writers:
                    self._feed(self._writers[fd])
                elif fd in self._leftovers:
                    self._discard(fd)

    def _patience(self, now: float) -> float:
        """Look at what is watched where it is time to, and return how long nothing is due."""
        due = [command.due() for command in self._commands.values()]
        if self._watched is not None and not self._frozen and (due or self._strays_allowed):
            self._watched.look(now, self._commands)
            due.append(self._watched.due)
        if self._frozen:
            self._stillness.look(now, self._commands)
            due.append(self._stillness.due)
        return min(max(0.0, min(due) - time.monotonic()), _LONGEST_WAIT) if due else -1.0

    def _receive(self) -> bool:
        """Handle what the host sent; False at the end of the channel."""
        data = os.read(self._channel, 1 << 20)
        self._received += data
        while len(self._received) >= HEADER.size:
            length, kind, command_id = HEADER.unpack_from(self._received)
            if length > MAX_FRAME:
                return False
            if len(self._received) < length + 4:
                break
            payload = bytes(self._received[HEADER.size : length + 4])
            del self._received[: length + 4]
            self._handle(kind, command_id, payload)
        return bool(data)

    def _handle(self, kind: int, command_id: int, payload: bytes) -> None:
        command = self._commands.get(command_id)
        if self._files.handle(kind, command_id, payload):
            return
        if kind == EXEC:
            self._start(command_id, payload.split(b"\0"))
        elif kind == INPUT:
            self._take_input(command, command_id, payload)
        elif kind == CREDIT_FRAME and command is not None:
            self._grant(command, CREDIT.unpack(payload)[0])
        elif kind == CANCEL and command is not None:
            self._end(command, CANCELLED)
        elif kind in (PAUSE, RESUME):
            self._freeze(kind == PAUSE)
            self._sender.send(REPLY, command_id)
        elif kind == KILL_ALL:
            self._kill_all(command_id)

    def _start(self, command_id: int, fields: list[bytes]) -> None:
        try:
            command = launch(command_id, fields, self._root)
        except OSError as error:
            text = b"%s: %s" % (refusal_text(error), os.fsencode(error.filename or fields[7]))
            head = DONE.pack(NOT_STARTED, -1, *_NOTHING)
            self._sender.send(DONE_FRAME, command_id, head + text)
            return
        self._commands[command_id] = command
        protect(command.pid)
        for stream in command.streams:
            self._readers[stream.fd] = (command, stream)
            self._poll.register(stream.fd, select.EPOLLIN)

    def _take_input(self, command: Command | None, command_id: int, data: bytes) -> None:
        """Queue bytes for a command's standard input; none means its end."""
        if command is None or command.stdin < 0:
            self._sender.send(CREDIT_FRAME, command_id, CREDIT.pack(len(data)))
            return
        command.pending += data
        command.input_ends = command.input_ends or not data
        self._feed(command)

    def _feed(self, command: Command) -> None:
        """Write pending input, and give the host credit for what was taken."""
        fd = command.stdin
        taken = command.write_input()
        if command.stdin < 0:
            self._writers.pop(fd, None)
        elif command.pending and fd not in self._writers:
            self._writers[fd] = command
            self._poll.register(fd, select.EPOLLOUT)
        elif not command.pending and self._writers.pop(fd, None) is not None:
            self._poll.unregister(fd)
        if taken:
            self._sender.send(CREDIT_FRAME, command.id, CREDIT.pack(taken))

    def _grant(self, command: Command, count: int) -> None:
        """Let a raw stream go on that had filled its window."""
        stream = command.streams[0]
        if command.window <= 0 < command.window + count and stream.fd >= 0:
            self._readers[stream.fd] = (command, stream)
            self._poll.register(stream.fd, select.EPOLLIN)
        command.window += count

    def _pump(self, command: Command, stream: Stream) -> bool:
        """Read once and pass on; False where nothing is there, the end came or the window is full.

        Closing the read end takes it out of the poll: no other process holds it.
        """
        try:
            data = os.read(stream.fd, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            del self._readers[stream.fd]
            os.close(stream.fd)
            stream.fd = -1
            return False
        now = stream.feed(data)
        if now:
            self._sender.send(stream.kind, command.id, now)
        if stream.raw:
            command.window -= len(now) + FRAME_COST
            if command.window <= 0:
                del self._readers[stream.fd]
                self._poll.unregister(stream.fd)
                return False
        elif command.reason == EXITED and command.printed() > command.limit:
            self._end(command, OUTPUT_LIMIT)
        return True

    def _discard(self, fd: int) -> None:
        """Drop what a process in the background still prints."""
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            self._leftovers.discard(fd)
            os.close(fd)

    def _settle(self) -> None:
        """Wait until everything that was killed is gone, for a time."""
        deadline = time.monotonic() + _SETTLE_SECONDS
        while self._reap() and time.monotonic() < deadline:
            select.select([self._child_ends], [], [], _SETTLE_SECONDS)
            _empty(self._child_ends)

    def _reap(self) -> bool:
        """Collect every process that ended, orphans too; False where no process is left."""
        while True:
            try:
                pid, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            for command in self._commands.values():
                if command.pid == pid and command.status < 0:
                    command.status = status
                    command.cpu = used.ru_utime + used.ru_stime
                    command.peak = used.ru_maxrss << 10
                    command.drain_until = time.monotonic() + DRAIN_SECONDS

    def _watch(self, command: Command, now: float) -> None:
        """Do what is due for one command."""
        if command.status >= 0:
            if all(stream.fd < 0 for stream in command.streams):
                self._finish(command)
            elif now >= command.drain_until:
                command.drain_until = now + DRAIN_SECONDS
                if not command.blocked:
                    self._finish(command)
        elif command.frozen_at:
            return
        elif command.reason == EXITED and now >= command.deadline:
            command.reason = TIMEOUT
            command.kill_at = now + GRACE_SECONDS
            self._signal(command, SIGTERM)
        elif command.kill_at and now >= command.kill_at:
            command.kill_at = 0.0
            self._signal(command, SIGKILL)

    def _end(self, command: Command, reason: int) -> None:
        """End a command at once."""
        if command.reason == EXITED:
            command.reason = reason
        self._signal(command, SIGKILL)

    def _signal(self, command: Command, number: int) -> None:
        """Signal every process of a command.

        Where no other command may own a process, that is everything inside: the one way that no
        process escapes by a new session, a cleared environment or a double fork.
        """
        if len(self._commands) <= 1 and not self._strays_allowed:
            self._processes.signal(number)
            if number == SIGKILL:
                self._settle()
            return
        for _ in range(20 if number == SIGKILL else 1):
            pids = self._processes.family(command.pid, command.mark)
            if not pids:
                return
            signal_each(pids, number)

    def _finish(self, command: Command) -> None:
        """End what a command left behind, pass on its last output and report its end."""
        stays = command.background and command.reason == EXITED
        if not stays:
            self._signal(command, SIGKILL)
        for stream in command.streams:
            for _ in range(64):
                if stream.fd < 0 or not self._pump(command, stream):
                    break
        if command.streams[0].fd >= 0 and command.blocked:
            return
        del self._commands[command.id]
        self._strays_allowed = self._strays_allowed or stays
        self._writers.pop(command.stdin, None)
        command.close_input()
        for stream in command.streams:
            self._retire(stream, stays)
            tail = stream.rest()
            if tail:
                self._sender.send(stream.kind, command.id, tail)
        self._sender.send(DONE_FRAME, command.id, command.report())

    def _retire(self, stream: Stream, stays: bool) -> None:
        """Close a stream, or keep it drained for a process that stays."""
        if stream.fd < 0:
            return
        del self._readers[stream.fd]
        if stays:
            self._leftovers.add(stream.fd)
        else:
            os.close(stream.fd)
        stream.fd = -1

    def _freeze(self, frozen: bool) -> None:
        """Stop everything, or let it go on; time limits of what is stopped stand still."""
        now = time.monotonic()
        if frozen != self._frozen:
            self._processes.signal(SIGSTOP if frozen else SIGCONT)
        if frozen and not self._frozen:
            self._stillness.begin(now)
        for command in self._commands.values():
            if frozen and not self._frozen:
                command.freeze(now)
            elif not frozen:
                command.thaw(now)
        self._frozen = frozen

    def _kill_all(self, command_id: int) -> None:
        """End every process but this one."""
        for command in self._commands.values():
            if command.reason == EXITED:
                command.reason = CANCELLED
        self._processes.signal(SIGKILL)
        self._settle()
        self._strays_allowed = False
        self._sender.send(REPLY, command_id)


def _empty(fd: int) -> None:
    """Forget what a non-blocking descriptor tells of ended processes."""
    try:
        os.read(fd, 4096)
    except BlockingIOError:
        return
