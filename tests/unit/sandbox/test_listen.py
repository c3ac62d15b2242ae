"""Who hears what our pytest plugin tells."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from turnout.sandbox.inside.reports.listen import Listener

pytestmark = pytest.mark.cheats


class Room:
    """A listener in a thread of this process, and what it has passed on."""

    def __init__(self, path: Path, sessions: int) -> None:
        self.server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.server.bind(str(path))
        self.server.listen(8)
        self.path = path
        self._connections = [self.server]
        self._ended, self._ends = os.pipe()
        self._told, output = os.pipe()
        listener = Listener(self.server, sessions, output)
        self._thread = threading.Thread(target=self._listen, args=(listener, output))
        self._thread.start()

    def _listen(self, listener: Listener, output: int) -> None:
        listener.listen(self._ended)
        os.close(output)

    def connect(self) -> tuple[socket.socket, bytes]:
        """Return a connection and the word that it is given; empty where it is turned away."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._connections.append(connection)
        connection.settimeout(5)
        connection.connect(str(self.path))
        return connection, connection.recv(64).strip()

    def close(self) -> None:
        """Close what is open."""
        for connection in self._connections:
            connection.close()

    def told(self) -> list[bytes]:
        """End the listener and return the lines that it passed on."""
        os.write(self._ends, b"x")
        self._thread.join(10)
        with os.fdopen(self._told, "rb") as file:
            return file.read().splitlines()


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    """Listen to two sessions."""
    made = Room(tmp_path / "say", 2)
    yield made
    made.close()


def test_what_a_session_says_is_passed_on_until_it_has_finished(room: Room) -> None:
    """Lines without its word are not heard, nor what comes as its process ends."""
    connection, word = room.connect()
    said = [b'{"started": 1}', b'{"id": "a"}', b'{"finished": 0}', b'{"id": "late"}']
    connection.sendall(b'{"id": "forged"}\n' + b"0" * 32 + b' {"id": "guessed"}\n')
    connection.sendall(b"".join(word + b" " + line + b"\n" for line in said))
    assert room.told() == [b'{"taken": true}', *said[:3]]


def test_a_session_within_a_session_is_turned_away(room: Room) -> None:
    """As is a second one of the same process, be the first closed."""
    connection, word = room.connect()
    assert word
    assert room.connect()[1] == b""
    connection.close()
    assert room.connect()[1] == b""
    assert room.told() == [b'{"taken": true}']


def test_the_next_session_is_heard_when_the_process_of_the_last_has_ended(room: Room) -> None:
    """And no more of them than there may be."""
    program = (
        "import socket, sys\nc = socket.socket(socket.AF_UNIX)\nc.connect(sys.argv[1])\n"
        "sys.exit(0 if c.recv(64) else 1)"
    )
    argv = [sys.executable, "-c", program, str(room.path)]
    assert [subprocess.run(argv, check=False).returncode for _ in range(3)] == [0, 0, 1]
    assert room.told() == [b'{"taken": true}'] * 2
