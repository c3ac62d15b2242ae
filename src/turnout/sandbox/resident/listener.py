"""Taking the listening socket of a sandbox's network over, to serve it from outside."""

import array
import asyncio
import os
import socket
import stat
from contextlib import ExitStack
from ipaddress import IPv4Address

from turnout.errors import SandboxError

__all__ = ["receive_listener"]

_DESCRIPTOR = array.array("i").itemsize
_MOST_DESCRIPTORS = 16


async def receive_listener(sock: socket.socket, timeout: float) -> socket.socket:
    """Receive the listening socket that an agent hands over, once, before it runs any command.

    `sock` is our end of a pair, or a listening unix socket whose first connection is taken; the
    caller closes it. Anything but one TCP socket that listens on a loopback address is closed and
    refused with a `SandboxError`.
    """
    try:
        async with asyncio.timeout(timeout):
            if not _option(sock, socket.SO_ACCEPTCONN):
                return await _one_listener(sock)
            sock.setblocking(False)
            connection, _ = await asyncio.get_running_loop().sock_accept(sock)
            with connection:
                return await _one_listener(connection)
    except TimeoutError:
        raise SandboxError(f"The sandbox handed no socket over within {timeout:g} s.") from None
    except OSError as error:
        raise SandboxError(f"The sandbox handed no socket over: {error.strerror}.") from None


async def _one_listener(sock: socket.socket) -> socket.socket:
    await _readable(sock)
    room = socket.CMSG_SPACE(_MOST_DESCRIPTORS * _DESCRIPTOR)
    data, ancillary, _, _ = sock.recvmsg(2, room, socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT)
    with ExitStack() as received:
        sockets: list[int] = []
        for level, kind, body in ancillary:
            if (level, kind) != (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                continue
            numbers = array.array("i", body[: len(body) // _DESCRIPTOR * _DESCRIPTOR])
            for number in numbers:
                received.callback(os.close, number)
            sockets += numbers
        if len(data) != 1 or len(sockets) != 1 or not stat.S_ISSOCK(os.fstat(sockets[0]).st_mode):
            raise SandboxError("The sandbox handed something else over than one socket.")
        listener = socket.socket(fileno=sockets[0])
        received.pop_all()
    return _checked_listener(listener)


def _checked_listener(listener: socket.socket) -> socket.socket:
    """Return a socket that is a listening one of the loopback; another is closed."""
    with ExitStack() as undo:
        undo.callback(listener.close)
        listens = (
            listener.family == socket.AF_INET
            and listener.type == socket.SOCK_STREAM
            and _option(listener, socket.SO_PROTOCOL) == socket.IPPROTO_TCP
            and _option(listener, socket.SO_ACCEPTCONN) == 1
        )
        if not listens or not IPv4Address(listener.getsockname()[0]).is_loopback:
            raise SandboxError("The sandbox handed a socket over that does not listen at home.")
        listener.setblocking(False)
        undo.pop_all()
    return listener


def _option(sock: socket.socket, name: int) -> int:
    return sock.getsockopt(socket.SOL_SOCKET, name)


async def _readable(sock: socket.socket) -> None:
    """Wait until something can be read, or the other end is closed."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(sock, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(sock)
