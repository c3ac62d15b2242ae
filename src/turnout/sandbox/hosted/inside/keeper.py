"""Keeps the resident agent of a rented machine running between calls of the host.

    python3 -ISE keeper.py FOLDER WORD...

`FOLDER` holds `resident.py`; `WORD`s are the arguments of the agent without its channel. Couriers
connect to `FOLDER/keeper.sock` and send frames for the agent. Frames of a call go to the courier
that asked for it last, and wait where that has left. The end of the agent ends the keeper.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import sys

__all__ = ["Keeper", "Peer", "main"]

HEADER = struct.Struct(">IBI")
INPUT, CANCEL, CREDIT_FRAME = 2, 3, 22
COLLECT, LEAVE = 200, 201
DONE_FRAME, REPLY, REFUSED = 19, 20, 21
PIECE = 1 << 18
MOST_WAITING = 4 << 20


class Peer:
    """A connection that is never waited for."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock = sock
        self._in = bytearray()
        self._out = bytearray()

    @property
    def waits(self) -> bool:
        """Whether something is still to be sent."""
        return bool(self._out)

    @property
    def full(self) -> bool:
        """Whether too much is still to be sent."""
        return len(self._out) > MOST_WAITING

    def receive(self) -> list[tuple[int, int, bytes]] | None:
        """Return kind, call and bytes of each whole frame that has come; None at the end."""
        data = self.sock.recv(PIECE)
        if not data:
            return None
        self._in += data
        frames = []
        while len(self._in) >= HEADER.size:
            length, kind, call = HEADER.unpack_from(self._in)
            if len(self._in) < length + 4:
                break
            frames.append((kind, call, bytes(self._in[: length + 4])))
            del self._in[: length + 4]
        return frames

    def send(self, frame: bytes) -> None:
        """Queue a frame."""
        self._out += frame

    def flush(self) -> None:
        """Send what can be sent at once."""
        del self._out[: self.sock.send(self._out[:PIECE])]


class Keeper:
    """Passes frames between the agent and the couriers."""

    def __init__(self, agent: socket.socket, listener: socket.socket) -> None:
        self._agent = Peer(agent)
        self._listener = listener
        self._couriers: dict[int, Peer] = {}
        self._owners: dict[int, Peer] = {}
        self._waiting: dict[int, list[bytes]] = {}
        """Frames of each open call that nobody has fetched."""

    def serve(self) -> None:
        """Serve until the agent ends."""
        while True:
            poll = select.poll()
            poll.register(self._listener, select.POLLIN)
            for peer in (self._agent, *self._couriers.values()):
                reads = 0 if self._agent.full and peer is not self._agent else select.POLLIN
                poll.register(peer.sock, reads | (select.POLLOUT if peer.waits else 0))
            for fd, event in poll.poll():
                if fd == self._listener.fileno():
                    courier = Peer(self._listener.accept()[0])
                    self._couriers[courier.sock.fileno()] = courier
                elif fd == self._agent.sock.fileno():
                    if not self._turn(self._agent, event):
                        return
                elif fd in self._couriers and not self._turn(self._couriers[fd], event):
                    self._lose(fd)

    def _turn(self, peer: Peer, event: int) -> bool:
        """Send and receive what can be; False at the end of a peer."""
        try:
            if event & select.POLLOUT:
                peer.flush()
            if event & (select.POLLIN | select.POLLHUP | select.POLLERR):
                frames = peer.receive()
                if frames is None:
                    return False
                for kind, call, frame in frames:
                    if peer is self._agent:
                        self._bring(kind, call, frame)
                    else:
                        self._take(peer, kind, call, frame)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True

    def _take(self, courier: Peer, kind: int, call: int, frame: bytes) -> None:
        """Handle what a courier sent."""
        if kind == LEAVE:
            self._owners.pop(call, None)
            courier.send(frame)
            return
        if kind == CANCEL:
            self._waiting.pop(call, None)
            self._owners.pop(call, None)
        elif kind not in (INPUT, CREDIT_FRAME):
            self._owners[call] = courier
            for waiting in self._waiting.pop(call, []):
                courier.send(waiting)
            self._waiting[call] = []
        if kind != COLLECT:
            self._agent.send(frame)

    def _bring(self, kind: int, call: int, frame: bytes) -> None:
        """Pass on or keep what came from the agent."""
        if call not in self._waiting:
            return
        owner = self._owners.get(call)
        if owner is None:
            self._waiting[call].append(frame)
            return
        owner.send(frame)
        if kind in (DONE_FRAME, REPLY, REFUSED):
            del self._waiting[call], self._owners[call]

    def _lose(self, fd: int) -> None:
        courier = self._couriers.pop(fd)
        courier.sock.close()
        for call in [call for call, owner in self._owners.items() if owner is courier]:
            del self._owners[call]


def main(folder: str, *words: str) -> None:
    """Start the agent and serve."""
    ours, theirs = socket.socketpair()
    os.set_inheritable(theirs.fileno(), True)
    channel = [f"{name}={theirs.fileno()}" for name in ("in", "out")]
    agent = [sys.executable, "-ISE", os.path.join(folder, "resident.py"), *channel, *words]
    os.posix_spawn(sys.executable, agent, {})
    theirs.close()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(os.path.join(folder, "keeper.sock"))
    listener.listen(16)
    Keeper(ours, listener).serve()


if __name__ == "__main__":
    main(*sys.argv[1:])
