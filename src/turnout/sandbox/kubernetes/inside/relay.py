"""Runs in the container beside the sandbox's: joins its own standard streams to the agent.

    python3 -ISE -c SOURCE SOCKET SECONDS

The end of either side ends the other, and process 1 of this container with it. It is a container of
its own because nothing that runs in the sandbox can see or signal its processes.
"""

from __future__ import annotations

import _socket
import os
import sys
import time

__all__ = ["connect", "copy", "main"]

CHUNK = 1 << 16
PAUSE = 0.02
TERM = 15


def connect(path: str, seconds: float) -> _socket.socket:
    """Connect to the agent's container, which may be starting still."""
    deadline = time.monotonic() + seconds
    while True:
        channel = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            channel.connect(path)
            return channel
        except OSError:
            channel.close()
            if time.monotonic() > deadline:
                sys.exit("the sandbox does not answer")
            time.sleep(PAUSE)


def copy(reader: int, writer: int) -> None:
    """Copy until the end of either."""
    try:
        while True:
            data = os.read(reader, CHUNK)
            if not data:
                return
            while data:
                data = data[os.write(writer, data) :]
    except OSError:
        return


def main(path: str, seconds: str) -> None:
    """Join the streams, each way by a process, until the channel ends."""
    channel = connect(path, float(seconds))
    sender = os.fork()
    if not sender:
        copy(0, channel.fileno())
        channel.shutdown(_socket.SHUT_WR)
        os._exit(0)
    copy(channel.fileno(), 1)
    os.kill(sender, TERM)
    os.kill(1, TERM)


if __name__ == "__main__":
    main(*sys.argv[1:3])
