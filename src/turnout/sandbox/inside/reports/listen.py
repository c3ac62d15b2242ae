"""Runs inside a sandbox beside the tests: hears what our pytest plugin tells, and passes it on.

    python3 -ISE -c SOURCE FOLDER SESSIONS

In `FOLDER` a socket is made that at most so many sessions of pytest may connect to, one after the
other: the next one when the process of the last has ended. A session is greeted with a word that
each of its lines must begin with. After the line that says that it has finished nothing more of it
counts, so that what runs as its process ends is not heard.

Prints the number of this process, then one JSON object a line: `{"taken": true}` where a session
connects, then what that tells. It ends when it is told to terminate, having heard what was said.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import sys
import time

try:
    import ctypes
except ImportError:
    # Some systems cut it off; then a process that knows how can look into this one.
    LIBRARY = None
else:
    LIBRARY = ctypes.CDLL(None)

__all__ = ["NAME", "Listener", "Session", "hide", "main", "runs", "write"]

NAME = "say"
FINISHED = b'{"finished"'
PR_SET_DUMPABLE = 4
MOST_TOLD = 16 << 20
MOST_LINE = 1 << 16
LAST_SECONDS = 2.0
"""That what was said may be heard in after the end; there is no end to what may be said."""


class Session:
    """One connection, made before any code of the repository ran in its process."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.word = os.urandom(16).hex().encode() + b" "
        self.over = False
        """Whether it has finished."""
        self.closed = False
        self._rest = b""
        facts = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        self.pid = struct.unpack("3i", facts)[0]

    def close(self) -> None:
        """Hear nothing more; no other session is heard before its process ends."""
        self.connection.close()
        self.closed = True

    def hear(self, data: bytes) -> list[bytes]:
        """Return the lines that count of what was said."""
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[:MOST_LINE]
        told = []
        for line in lines:
            if line.startswith(self.word) and not self.over:
                told.append(line[len(self.word) :])
                self.over = told[-1].startswith(FINISHED)
        return told


class Listener:
    """Hears one session after the other."""

    def __init__(self, server: socket.socket, sessions: int, output: int) -> None:
        self._server = server
        self._left = sessions
        self._output = output
        self._told = 0
        self._session: Session | None = None

    def listen(self, ended: int) -> None:
        """Listen until something can be read from `ended`, and what was said by then is heard."""
        try:
            self._listen(ended)
        finally:
            if self._session:
                self._session.close()

    def _listen(self, ended: int) -> None:
        deadline: float | None = None
        while deadline is None or time.monotonic() < deadline:
            session = self._session
            said = [session.connection] if session and not session.closed else []
            waiting = [] if deadline else [ended]
            heard: list[socket.socket | int] = [self._server, *said, *waiting]
            ready = select.select(heard, (), (), 0 if deadline else None)[0]
            if ended in ready:
                deadline = time.monotonic() + LAST_SECONDS
            elif deadline and not ready:
                return
            # What was said comes before who wants to say more.
            if session and said and session.connection in ready:
                self._hear(session)
            elif self._server in ready:
                self._accept()

    def _hear(self, session: Session) -> None:
        try:
            data = session.connection.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            session.close()
        for line in session.hear(data):
            self._pass_on(line)

    def _accept(self) -> None:
        connection, _ = self._server.accept()
        last = self._session
        if self._left < 1 or (last and runs(last.pid)):
            # A session that a test starts is the test's own business.
            connection.close()
            return
        if last:
            last.close()
        self._left -= 1
        self._session = Session(connection)
        self._pass_on(b'{"taken": true}')
        try:
            connection.sendall(self._session.word.strip() + b"\n")
        except OSError:
            self._session.close()

    def _pass_on(self, line: bytes) -> None:
        self._told += len(line) + 1
        if self._told <= MOST_TOLD:
            write(self._output, line + b"\n")


def runs(pid: int) -> bool:
    """Say whether a process has not ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b") ")[2][:1] not in (b"Z", b"X")
    except OSError:
        return False


def write(descriptor: int, data: bytes) -> None:
    """Write all of it."""
    while data:
        data = data[os.write(descriptor, data) :]


def hide() -> None:
    """Let no other process look into this one or into what it has open."""
    if LIBRARY is not None:
        LIBRARY.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def main(folder: str, sessions: str) -> None:
    """Make the socket and listen."""
    hide()
    ended, ends = os.pipe()
    os.set_blocking(ends, False)
    signal.signal(signal.SIGTERM, lambda _number, _frame: None)
    signal.set_wakeup_fd(ends)
    # A path of any length: that of a socket is short.
    os.chdir(folder)
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(NAME)
    server.listen(64)
    write(1, b"%d\n" % os.getpid())
    Listener(server, int(sessions), 1).listen(ended)


if __name__ == "__main__":
    main(*sys.argv[1:])
