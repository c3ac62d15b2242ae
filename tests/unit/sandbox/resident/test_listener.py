"""What a sandbox may hand over, and all that it may not."""

import array
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from turnout.errors import SandboxError
from turnout.sandbox.channel import receive_listener

Made = Callable[[ExitStack], list[int]]


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Return both ends of a connection."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    before = descriptors()
    yield
    assert descriptors() <= before


def descriptors() -> int:
    """Return how many descriptors this process has."""
    return len(list(Path("/proc/self/fd").iterdir()))


def listening(stack: ExitStack, *, address: str = "127.0.0.1") -> socket.socket:
    """Return a TCP socket that listens."""
    sock = stack.enter_context(socket.socket())
    sock.bind((address, 0))
    sock.listen()
    return sock


def hand_over(sock: socket.socket, numbers: list[int], data: bytes = b"L") -> None:
    """Send descriptors, as an agent does or as one would that means ill."""
    body = array.array("i", numbers)
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, body)] if numbers else []
    sock.sendmsg([data], rights)


async def test_a_listening_socket_is_taken_over(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    """Connections to it are accepted here, and no command of ours inherits it."""
    ours, theirs = pair
    with ExitStack() as stack:
        made = listening(stack)
        hand_over(theirs, [made.fileno()])
        address = made.getsockname()
    with await receive_listener(ours, 5) as listener:
        assert not listener.get_inheritable()
        assert not listener.getblocking()
        with socket.create_connection(address):
            listener.accept()[0].close()


async def test_a_path_is_as_good_as_a_pair(tmp_path: Path) -> None:
    """The first connection to a listening unix socket hands over."""
    with ExitStack() as stack:
        door = stack.enter_context(socket.socket(socket.AF_UNIX))
        door.bind(str(tmp_path / "door"))
        door.listen()
        theirs = stack.enter_context(socket.socket(socket.AF_UNIX))
        theirs.connect(str(tmp_path / "door"))
        hand_over(theirs, [listening(stack).fileno()])
        stack.enter_context(await receive_listener(door, 5))


def unix(stack: ExitStack) -> list[int]:
    """Make a unix socket that listens on nothing of the disk."""
    sock = stack.enter_context(socket.socket(socket.AF_UNIX))
    sock.bind("")
    sock.listen()
    return [sock.fileno()]


def file(stack: ExitStack) -> list[int]:
    """Make a file."""
    fd = os.memfd_create("x")
    stack.callback(os.close, fd)
    return [fd]


FALSE: dict[str, Made] = {
    "nothing": lambda _: [],
    "a file": file,
    "a unix socket": unix,
    "datagrams": lambda stack: [
        stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)).fileno()
    ],
    "one that does not listen": lambda stack: [stack.enter_context(socket.socket()).fileno()],
    "one on all addresses": lambda stack: [listening(stack, address="0.0.0.0").fileno()],
    "two": lambda stack: [listening(stack).fileno(), listening(stack).fileno()],
    "a hundred": lambda stack: [listening(stack).fileno()] * 100,
}


@pytest.mark.parametrize("what", FALSE)
async def test_anything_else_is_refused(
    pair: tuple[socket.socket, socket.socket], what: str
) -> None:
    """And closed, so that nothing of it stays here."""
    ours, theirs = pair
    with ExitStack() as stack:
        hand_over(theirs, FALSE[what](stack))
    with pytest.raises(SandboxError, match="handed"):
        await receive_listener(ours, 5)


async def test_more_than_one_byte_is_refused(pair: tuple[socket.socket, socket.socket]) -> None:
    """There is nothing to be said beside it."""
    ours, theirs = pair
    with ExitStack() as stack:
        hand_over(theirs, [listening(stack).fileno()], b"LL")
    with pytest.raises(SandboxError, match="something else"):
        await receive_listener(ours, 5)


async def test_silence_and_hanging_up_end_the_wait(
    pair: tuple[socket.socket, socket.socket], tmp_path: Path
) -> None:
    """There is a deadline, also for somebody to connect."""
    ours, theirs = pair
    with pytest.raises(SandboxError, match=r"within 0\.01 s"):
        await receive_listener(ours, 0.01)
    theirs.close()
    with pytest.raises(SandboxError, match="something else"):
        await receive_listener(ours, 5)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "door"))
        door.listen()
        with pytest.raises(SandboxError, match="within"):
            await receive_listener(door, 0.01)
