"""Machines of Runtime, by its package `withruntime`."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Protocol

from turnout.errors import SandboxUnavailableError
from turnout.sandbox.hosted.failures import lost, refused
from turnout.sandbox.hosted.machine import MachineWish, Ran

__all__ = [
    "RuntimeClient",
    "RuntimeFiles",
    "RuntimeMachine",
    "RuntimePackage",
    "RuntimeProvider",
    "RuntimeResult",
    "RuntimeSandbox",
    "RuntimeSandboxes",
]

_SHORTEST, _LONGEST = 60, 86_400
"""Seconds that a machine may be rented for."""
_LONGEST_COMMAND = 60.0
"""Seconds that the host waits for a command without keeping a stream open."""


class RuntimeResult(Protocol):
    """What became of a command."""

    exit_code: int | None
    stdout: str
    stderr: str
    timed_out: bool


class RuntimeFiles(Protocol):
    """Files of a machine."""

    def read_stream(self, path: str) -> AsyncIterator[bytes]:
        """Yield a file in pieces."""
        ...

    async def write(self, path: str, data: bytes) -> object:
        """Write; beneath `/workspace` a file of any size."""
        ...


class RuntimeSandbox(Protocol):
    """One machine."""

    @property
    def id(self) -> str:
        """The host's name for it."""
        ...

    files: RuntimeFiles

    async def exec(self, command: str, *, timeout_ms: int | None = None) -> RuntimeResult:
        """Run by `bash -c`."""
        ...

    async def pause(self) -> object:
        """Freeze it with its memory."""
        ...

    async def wake(self) -> object:
        """Thaw it."""
        ...

    async def delete(self) -> object:
        """End it."""
        ...


class RuntimeSandboxes(Protocol):
    """The machines of an account."""

    create: Callable[..., Awaitable[RuntimeSandbox]]
    delete: Callable[..., Awaitable[object]]


class RuntimeClient(Protocol):
    """A client of the host."""

    sandboxes: RuntimeSandboxes

    async def me(self) -> object:
        """Tell whom the key belongs to."""
        ...

    async def close(self) -> None:
        """Close its connections."""
        ...


class RuntimePackage(Protocol):
    """What is used of the package."""

    AsyncRuntime: Callable[..., RuntimeClient]
    RuntimeAPIError: type[Exception]
    NotFoundError: type[Exception]


class RuntimeMachine:
    """One machine."""

    def __init__(self, package: RuntimePackage, sandbox: RuntimeSandbox) -> None:
        self._package = package
        self._sandbox = sandbox

    @property
    def id(self) -> str:
        """The host's name for it."""
        return self._sandbox.id

    async def run(self, line: str, *, timeout: float) -> Ran:
        """Run a line by bash."""
        milliseconds = round(min(timeout, _LONGEST_COMMAND) * 1000)
        with lost(self._package.RuntimeAPIError):
            done = await self._sandbox.exec(line, timeout_ms=milliseconds)
        return Ran(None if done.timed_out else done.exit_code, done.stdout, done.stderr)

    async def read(self, path: str, *, limit: int) -> bytes:
        """Return a file; more than the limit is not fetched."""
        found = bytearray()
        with lost(self._package.RuntimeAPIError):
            async for piece in self._sandbox.files.read_stream(path):
                found += piece
                if len(found) >= limit:
                    break
        return bytes(found[:limit])

    async def write(self, path: str, data: bytes) -> None:
        """Write a file."""
        with lost(self._package.RuntimeAPIError):
            await self._sandbox.files.write(path, data)

    async def pause(self) -> bool:
        """Freeze the machine with all that runs on it."""
        with lost(self._package.RuntimeAPIError):
            await self._sandbox.pause()
        return True

    async def resume(self) -> None:
        """Thaw it."""
        with lost(self._package.RuntimeAPIError):
            await self._sandbox.wake()

    async def end(self) -> None:
        """Give it back."""
        with lost(self._package.RuntimeAPIError), suppress(self._package.NotFoundError):
            await self._sandbox.delete()


class RuntimeProvider:
    """Rents machines of Runtime."""

    name = "withruntime"
    scratch = "/workspace/.scratch"

    def __init__(self, package: RuntimePackage, api_key: str) -> None:
        """Use the loaded package."""
        self._package = package
        self._client = package.AsyncRuntime(api_key=api_key)

    async def check(self) -> str:
        """Ask whom the key belongs to."""
        with refused(self._package.RuntimeAPIError):
            await self._client.me()
        return "its key is known"

    async def start(self, wish: MachineWish) -> RuntimeMachine:
        """Rent a machine."""
        if wish.egress.rules:
            raise SandboxUnavailableError(
                "Machines of withruntime cannot be held to hosts by their names.",
                mend="Use another driver, or allow no hosts.",
            )
        with refused(self._package.RuntimeAPIError):
            sandbox = await self._client.sandboxes.create(
                image=wish.image,
                timeout_seconds=min(max(wish.lifetime_seconds, _SHORTEST), _LONGEST),
                on_lease_end="delete",
                labels=dict(wish.labels),
                network={"internet": False},
                secrets=[],
            )
        return RuntimeMachine(self._package, sandbox)

    async def end(self, machine_id: str) -> None:
        """Give a machine back by its name."""
        with refused(self._package.RuntimeAPIError), suppress(self._package.NotFoundError):
            await self._client.sandboxes.delete(machine_id)

    async def close(self) -> None:
        """Close the client's connections."""
        await self._client.close()
