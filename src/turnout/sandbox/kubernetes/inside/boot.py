"""Process 1 of the sandbox's container, until the host has handed over the resident agent.

    python3 -ISE -c SOURCE SOCKET SECONDS

Takes one connection at `SOCKET`, the first and last, and becomes the agent on it. A pod to which
nobody comes within `SECONDS` ends; 0 waits for as long as the pod lasts.
"""

from __future__ import annotations

import os
import socket
import sys

__all__ = ["accept", "main", "take", "write"]

HOME = "/tmp/home"
AGENT = "resident.py"


def accept(path: str, seconds: float) -> int:
    """Return the descriptor of the only connection that there will be."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen(1)
    listener.settimeout(seconds or None)
    try:
        channel, _ = listener.accept()
    except OSError:
        sys.exit("nobody came")
    listener.close()
    os.unlink(path)
    channel.setblocking(True)
    return channel.detach()


def take(fd: int, count: int) -> bytes:
    """Read so many bytes and no more: what follows is for the agent."""
    parts = bytearray()
    while len(parts) < count:
        data = os.read(fd, count - len(parts))
        if not data:
            sys.exit("the host went away")
        parts += data
    return bytes(parts)


def write(path: str, data: bytes) -> None:
    """Write a small file."""
    with open(path, "wb") as file:
        file.write(data)


def main(path: str, seconds: str) -> None:
    """Wait, take what was sent, become the agent.

    What is sent: the lengths of three parts, 8 bytes each, then the parts: the arguments of the
    agent, joined by NUL and without its channel, the agent, and a bundle of certificates.
    """
    os.umask(0o022)
    os.makedirs(HOME, exist_ok=True)
    fd = accept(path, float(seconds))
    lengths = [int.from_bytes(take(fd, 8), "big") for _ in range(3)]
    words, source, bundle = (take(fd, length) for length in lengths)
    folder = os.path.dirname(path)
    agent = os.path.join(folder, AGENT)
    write(agent, source)
    if bundle:
        write(os.path.join(folder, "ca.pem"), bundle)
    os.set_inheritable(fd, True)
    arguments = [f"in={fd}", f"out={fd}", *words.decode().split("\0")]
    os.execv(sys.executable, [sys.executable, "-ISE", agent, *arguments])


if __name__ == "__main__":
    main(*sys.argv[1:3])
