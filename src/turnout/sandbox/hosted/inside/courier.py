"""Carries one call of the host to the agent of a rented machine, and what comes back for it.

    python3 -ISE courier.py FOLDER CALL SENT

`SENT` is the frames of the call in base64, or `parts:N` for the files `FOLDER/CALL.in.0` and so on,
or `more` where they were sent before. It stays until the call has ended, there is enough to bring
home, or some time has passed. Prints one line of JSON: the frames that came, in base64 where they
are few and else in the file `FOLDER/CALL.out`, and whether the call goes on.
"""

from __future__ import annotations

import base64
import json
import os
import select
import socket
import struct
import sys
import time
from collections.abc import Iterator

__all__ = ["Courier", "connect", "main", "sent_frames"]

HEADER = struct.Struct(">IBI")
CREDIT = struct.Struct(">I")
EXEC, INPUT, CANCEL = 1, 2, 3
STDOUT, DONE_FRAME, REPLY, REFUSED, CREDIT_FRAME = 17, 19, 20, 21, 22
COLLECT, LEAVE = 200, 201
WINDOW = 1 << 20
FRAME_COST = 64
PIECE = 1 << 18
ENOUGH = 4 << 20
FEW = 32 << 10
CONNECT_SECONDS = 20
PAUSE = 0.02
LINGER = 0.1
"""How long more is awaited once something has come."""
PATIENCE = 25.0
"""How long something is awaited."""


def connect(path: str) -> socket.socket:
    """Connect to the keeper, which may be starting still."""
    deadline = time.monotonic() + CONNECT_SECONDS
    while True:
        keeper = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            keeper.connect(path)
            return keeper
        except OSError:
            keeper.close()
            if time.monotonic() > deadline:
                sys.exit("the agent does not answer")
            time.sleep(PAUSE)


def sent_frames(folder: str, call: str, sent: str) -> Iterator[bytes]:
    """Yield the frames of the call; files are removed once they were read."""
    if sent == "more":
        yield HEADER.pack(5, COLLECT, int(call))
        return
    rest = b""
    for data in _pieces(folder, call, sent):
        whole, start = rest + data, 0
        while len(whole) - start >= HEADER.size:
            end = start + HEADER.unpack_from(whole, start)[0] + 4
            if len(whole) < end:
                break
            yield whole[start:end]
            start = end
        rest = whole[start:]


def _pieces(folder: str, call: str, sent: str) -> Iterator[bytes]:
    if not sent.startswith("parts:"):
        yield base64.b64decode(sent)
        return
    for number in range(int(sent.partition(":")[2])):
        path = os.path.join(folder, f"{call}.in.{number}")
        with open(path, "rb") as file:
            data = file.read()
        os.unlink(path)
        yield data


class Courier:
    """One call under way."""

    def __init__(self, keeper: socket.socket, call: int, frames: Iterator[bytes]) -> None:
        self.brought = bytearray()
        """Frames that came."""
        self.more = True
        """The call goes on."""
        self._keeper = keeper
        self._call = call
        self._frames = frames
        self._next = next(frames, None)
        self._counted = self._next is not None and self._next[4] == EXEC
        self._credit = WINDOW
        self._received = bytearray()
        self._leaving = False

    def carry(self) -> bool:
        """Carry the call as long as it is worth it; False where the agent went away.

        Nothing comes back for a call that is given up.
        """
        if self._next is not None and self._next[4] == CANCEL:
            self._keeper.sendall(self._next)
            self.more = False
            return True
        until = time.monotonic() + PATIENCE
        while self.more:
            mine = self._next is not None and (self._credit > 0 or self._next[4] != INPUT)
            poll = select.poll()
            poll.register(self._keeper, select.POLLIN | (select.POLLOUT if mine else 0))
            for _, event in poll.poll(max(0.0, until - time.monotonic()) * 1000):
                if event & select.POLLOUT:
                    self._send()
                if event & ~select.POLLOUT:
                    data = self._keeper.recv(PIECE)
                    if not data:
                        return False
                    self._received += data
            if self._take():
                break
            if self.brought:
                until = min(until, time.monotonic() + LINGER)
            late = time.monotonic() >= until or len(self.brought) >= ENOUGH
            if late and self._next is None and not self._leaving:
                self._leave()
                until = time.monotonic() + PATIENCE
        return True

    def _send(self) -> None:
        """Send a frame; standard input no faster than the agent takes it."""
        frame = self._next
        if frame is None:
            return
        if self._counted and frame[4] == INPUT:
            self._credit -= len(frame) - HEADER.size
        self._keeper.sendall(frame)
        self._next = next(self._frames, None)

    def _leave(self) -> None:
        """Ask the keeper to keep what comes from now on."""
        self._leaving = True
        self._keeper.sendall(HEADER.pack(5, LEAVE, self._call))

    def _take(self) -> bool:
        """Keep whole frames; True where none will come any more."""
        while len(self._received) >= HEADER.size:
            length, kind, _ = HEADER.unpack_from(self._received)
            if len(self._received) < length + 4:
                break
            frame = bytes(self._received[: length + 4])
            del self._received[: length + 4]
            if kind == LEAVE:
                return True
            if kind == CREDIT_FRAME:
                self._credit += CREDIT.unpack(frame[HEADER.size :])[0]
                continue
            self.brought += frame
            if kind == STDOUT:
                cost = CREDIT.pack(length - 5 + FRAME_COST)
                self._keeper.sendall(HEADER.pack(9, CREDIT_FRAME, self._call) + cost)
            self.more = kind not in (DONE_FRAME, REPLY, REFUSED)
        return not self.more


def main(folder: str, call: str, sent: str) -> None:
    """Carry a call and bring home what came."""
    keeper = connect(os.path.join(folder, "keeper.sock"))
    told: dict[str, object] = {"inline": "", "more": False}
    if sent:
        courier = Courier(keeper, int(call), sent_frames(folder, call, sent))
        if not courier.carry():
            sys.exit("the agent is gone")
        told["more"] = courier.more
        if len(courier.brought) <= FEW:
            told["inline"] = base64.b64encode(courier.brought).decode()
        else:
            told["file"] = True
            with open(os.path.join(folder, f"{call}.out"), "wb") as file:
                file.write(courier.brought)
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:4])
