"""The gateway's own HTTP server, inside the process that asks for it."""

import asyncio
import errno
import resource
import socket
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from turnout.errors import ConfigError, UnfitError
from turnout.gateway.connection import BoundedConnection

__all__ = ["BoundAddress", "hold_many_connections", "serve"]

_GRACE = 5
"""Seconds that open requests have to end once the server is told to stop."""
_BACKLOG = 2_048
_LAST = 2.0
"""Seconds that a request has to end once it is cancelled."""
_TICK, _TICKS = 0.1, 864_000
"""Seconds between ticks, every tenth of which renews the date; ticks after which they repeat."""
_LONGEST_SOCKET_PATH = 107
_TAKEN = frozenset({errno.EADDRINUSE, errno.EACCES})
"""What the system answers where a port is another program's, or not for us."""


@dataclass(frozen=True, slots=True)
class BoundAddress:
    """Where a server listens."""

    base_url: str
    """`http://gateway` where it is a unix socket: the host is a name then, not an address."""
    uds: Path | None = None
    port: int | None = None


@asynccontextmanager
async def serve(
    app: ASGIApp, *, uds: Path | None = None, host: str | None = None, port: int | None = None
) -> AsyncIterator[BoundAddress]:
    """Serve `app` until the block ends, on a unix socket or on `host` and `port`.

    Port 0 or None takes a free one. A socket is for our own user alone, as is its folder where
    that is made here.
    Signals stay with the caller. `ConfigError` where the address cannot be had.
    """
    if (uds is None) == (host is None):
        raise ConfigError("Give either a socket path or a host.")
    if uds is not None:
        listener, bound = _bind_unix(uds), BoundAddress("http://gateway", uds=uds)
    else:
        listener = _bind_tcp(host or "", port or 0)
        taken = listener.getsockname()[1]
        bound = BoundAddress(f"http://{_in_url(host or '')}:{taken}", port=taken)
    server = _Server(_config(app))
    running = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await server.wait_started(running)
        yield bound
    finally:
        server.stop()
        await asyncio.wait({running})
        _close(listener, uds)
    running.result()


def hold_many_connections() -> None:
    """Let this process have as many files open as it may: each stream takes two.

    Where more cannot be had, all stays as it is.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._up = asyncio.Event()
        self._stopping = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._up.set()

    async def main_loop(self) -> None:
        """Tick until told to stop, and stop then rather than at the next tick."""
        tick = 0
        while not await self.on_tick(tick):
            tick = (tick + 1) % _TICKS
            with suppress(TimeoutError):
                async with asyncio.timeout(_TICK):
                    await self._stopping.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close every connection once its request is answered, or its grace is over."""
        for server in self.servers:
            server.close()
        for taken in sockets or []:
            taken.close()
        state = self.server_state
        for connection in list(state.connections):
            connection.shutdown()
        late = set(state.tasks)
        if late:
            _, late = await asyncio.wait(late, timeout=_GRACE)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=_LAST)

    def stop(self) -> None:
        """End the server; open requests have their grace."""
        self.should_exit = True
        self._stopping.set()

    async def wait_started(self, running: asyncio.Task[None]) -> None:
        """Return once connections are accepted; raise what ended `running` before that."""
        up = asyncio.ensure_future(self._up.wait())
        await asyncio.wait({up, running}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            up.cancel()
            running.result()


def _config(app: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=BoundedConnection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=_BACKLOG,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=_GRACE,
    )


def _bind_unix(path: Path) -> socket.socket:
    if len(str(path).encode()) > _LONGEST_SOCKET_PATH:
        raise ConfigError(
            f"The socket path {path} is longer than {_LONGEST_SOCKET_PATH} bytes.",
            mend="Use a folder with a shorter path; TMPDIR names the one of `turnout run`.",
        )
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        listener.bind(str(path))
        # Nobody can connect before `listen`, which comes after this.
        path.chmod(0o600)
    except OSError as error:
        listener.close()
        raise ConfigError(f"Cannot listen on {path}: {error.strerror}.") from error
    return listener


def _close(listener: socket.socket, path: Path | None) -> None:
    listener.close()
    if path is not None:
        path.unlink(missing_ok=True)


def _bind_tcp(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, address = found[0]
        # Only where the protocol is named does asyncio send small answers without delay.
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigError(f"Cannot listen on {host}: {error.strerror}.") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        refused = UnfitError if error.errno in _TAKEN else ConfigError
        raise refused(
            f"Cannot listen on {host}:{port}: {error.strerror}.",
            mend="Choose another port with --port; 0 takes a free one.",
        ) from error
    return listener


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
