"""Processes of `turnout` that need not import it: forks of a process that has.

`python -m tests.acceptance.forks DESCRIPTOR` is that process. It forks for each request that comes
over a socket, and ends when the socket is closed. A fork has its own session, folder, environment
and standard streams, and then does what `python -m turnout` does.
"""

import asyncio
import gc
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
from asyncio.subprocess import PIPE
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

import click

from turnout.cli.main import command, main

__all__ = ["Forked", "Forks"]

_LARGEST: Final = 1 << 18
_SECONDS: Final = 20.0
_HANDED_ON: Final = (signal.SIGHUP, signal.SIGINT)
"""Signals that a process ignores where who started it does."""
_COMMANDS: Final = ("run", "runs", "serve", "gateway", "keys", "policy", "usage", "models")
_LATER: Final = (
    "turnout.sandbox.bubblewrap",
    "turnout.wiring.serving.durable",
    "turnout.gateway.config.list_prices",
)
"""What a command imports when it is under way."""


class Forked:
    """One process, as `asyncio.subprocess.Process` shows its own."""

    def __init__(self, told: int) -> None:
        self.pid = 0
        self.returncode: int | None = None
        self.stdin: asyncio.StreamWriter | None = None
        self.stdout: asyncio.StreamReader | None = None
        self.stderr: asyncio.StreamReader | None = None
        self._told = told
        self._text = b""
        self._changed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(told, self._hear)

    async def begun(self) -> None:
        """Wait until it has been started."""
        async with asyncio.timeout(_SECONDS):
            while not self.pid:
                self._changed.clear()
                await self._changed.wait()

    async def wait(self) -> int:
        """Wait for its end."""
        while self.returncode is None:
            self._changed.clear()
            await self._changed.wait()
        return self.returncode

    async def communicate(self, typed: bytes | None = None) -> tuple[bytes, bytes]:
        """Write to its standard input, and read both streams to their ends."""
        if self.stdin is not None:
            with suppress(ConnectionError):
                self.stdin.write(typed or b"")
                await self.stdin.drain()
            self.stdin.close()
        assert self.stdout is not None
        assert self.stderr is not None
        out, err = await asyncio.gather(self.stdout.read(), self.stderr.read())
        await self.wait()
        return out, err

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(signal.SIGKILL)

    def _hear(self) -> None:
        """Read its id, and later its end, of the process that forked it."""
        data = os.read(self._told, 100)
        self._text += data
        said = self._text.split()
        self.pid = int(said[0]) if said else 0
        if not data:
            self.returncode = int(said[1]) if len(said) > 1 else -signal.SIGKILL
            self._loop.remove_reader(self._told)
            os.close(self._told)
        self._changed.set()


class Forks:
    """The process that forks others, from the worker's side; `close` ends it."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                cwd=Path(__file__).parents[2],
                env={"PATH": os.defpath, "LANG": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def close(self) -> None:
        """End it."""
        self._socket.close()
        self._process.wait(_SECONDS)

    async def start(
        self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str], stdin: int
    ) -> Forked:
        """Start `turnout`, in a session of its own."""
        told, tell = os.pipe()
        their_in, our_in = os.pipe() if stdin == PIPE else (os.open(os.devnull, os.O_RDONLY), -1)
        our_out, their_out = os.pipe()
        our_err, their_err = os.pipe()
        theirs = (their_in, their_out, their_err, tell)
        ignored = [number for number in _HANDED_ON if signal.getsignal(number) is signal.SIG_IGN]
        request = json.dumps([list(arguments), str(folder), dict(environment), ignored]).encode()
        process = Forked(told)
        try:
            socket.send_fds(self._socket, [request], theirs)
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        process.stdin = await _writer(our_in) if stdin == PIPE else None
        process.stdout, process.stderr = await _reader(our_out), await _reader(our_err)
        await process.begun()
        return process


async def _reader(descriptor: int) -> asyncio.StreamReader:
    reader, loop = asyncio.StreamReader(), asyncio.get_running_loop()
    pipe = os.fdopen(descriptor, "rb", buffering=0)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return reader


async def _writer(descriptor: int) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    pipe = os.fdopen(descriptor, "wb", buffering=0)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, pipe)
    return asyncio.StreamWriter(transport, protocol, None, loop)


class _Request(NamedTuple):
    arguments: Sequence[str]
    folder: str
    environment: Mapping[str, str]
    ignored: Sequence[int]
    passed: Sequence[int]
    """Descriptors: the standard streams, and where to tell of the process."""


def _serve(requests: socket.socket) -> _Request:
    """Fork for each request; returns in the forks alone, with what was asked of them."""
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    signal.set_wakeup_fd(writes)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    children: dict[int, int] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(requests, selectors.EVENT_READ)
        selector.register(reads, selectors.EVENT_READ)
        while True:
            ready = [key.fileobj for key, _ in selector.select()]
            if reads in ready:
                os.read(reads, 1 << 12)
                _tell_ends(children)
            if requests not in ready:
                continue
            request, passed, *_ = socket.recv_fds(requests, _LARGEST, 4)
            if not request:
                sys.exit()
            if not (pid := os.fork()):
                break
            children[pid] = passed.pop()
            for descriptor in passed:
                os.close(descriptor)
    requests.detach()
    return _Request(*json.loads(request), passed)


def _become(asked: _Request) -> None:
    """Make this fork what was asked for."""
    os.setsid()
    os.write(asked.passed[3], f"{os.getpid()}\n".encode())
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number in asked.ignored:
        signal.signal(number, signal.SIG_IGN)
    for number, descriptor in enumerate(asked.passed[:3]):
        os.dup2(descriptor, number)
    os.closerange(3, 1 << 16)
    os.chdir(asked.folder)
    os.environb.clear()
    os.environb.update({os.fsencode(k): os.fsencode(v) for k, v in asked.environment.items()})
    sys.stdout.reconfigure(line_buffering=False)
    sys.argv[1:] = asked.arguments


def _tell_ends(children: dict[int, int]) -> None:
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        told = children.pop(pid)
        with suppress(BrokenPipeError):
            os.write(told, f"{os.waitstatus_to_exitcode(status)}\n".encode())
        os.close(told)


def _main(descriptor: int) -> NoReturn:
    for name in _COMMANDS:
        command.get_command(click.Context(command), name)
    for name in _LATER:
        import_module(name)
    gc.collect()
    gc.freeze()
    _become(_serve(socket.socket(fileno=descriptor)))
    main()
    sys.exit()


if __name__ == "__main__":
    _main(int(sys.argv[1]))
