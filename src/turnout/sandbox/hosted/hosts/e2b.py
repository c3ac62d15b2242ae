"""Machines of E2B, by its package `e2b`, and of hosts that speak the same interface."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from turnout.errors import SandboxUnavailableError
from turnout.sandbox.hosted.failures import lost, refused
from turnout.sandbox.hosted.machine import MachineWish, Ran

__all__ = [
    "E2bCommands",
    "E2bFiles",
    "E2bMachine",
    "E2bPackage",
    "E2bPaginator",
    "E2bProvider",
    "E2bResult",
    "E2bSandbox",
    "E2bSandboxes",
]

_EVERYTHING = "0.0.0.0/0"


class E2bResult(Protocol):
    """What became of a command."""

    exit_code: int
    stdout: str
    stderr: str


class E2bCommands(Protocol):
    """Commands of a machine."""

    async def run(self, cmd: str, *, timeout: float | None = 60) -> E2bResult:
        """Run by a login shell; raises where the exit status is not 0."""
        ...


class E2bFiles(Protocol):
    """Files of a machine."""

    read: Callable[..., Awaitable[AsyncIterator[bytes]]]
    """Read as a stream, for the format `stream`."""

    async def write(self, path: str, data: bytes) -> object:
        """Write, and make the folders."""
        ...


class E2bSandbox(Protocol):
    """One machine."""

    sandbox_id: str
    commands: E2bCommands
    files: E2bFiles

    async def pause(self) -> object:
        """Freeze it with its memory."""
        ...

    async def connect(self, timeout: int | None = None) -> object:
        """Thaw it."""
        ...

    async def kill(self) -> bool:
        """End it."""
        ...


class E2bPaginator(Protocol):
    """Pages of machines."""

    async def next_items(self) -> Sequence[object]:
        """Return the next page."""
        ...


class E2bSandboxes(Protocol):
    """The class of machines, whose own methods make, list and end them."""

    create: Callable[..., Awaitable[E2bSandbox]]
    list: Callable[..., E2bPaginator]
    kill: Callable[..., Awaitable[bool]]


class E2bPackage(Protocol):
    """What is used of the package."""

    AsyncSandbox: E2bSandboxes
    CommandExitException: type[Exception]
    SandboxException: type[Exception]
    AuthenticationException: type[Exception]


class E2bMachine:
    """One machine."""

    def __init__(
        self,
        sandbox: E2bSandbox,
        lifetime_seconds: int,
        exited: type[Exception],
        errors: tuple[type[Exception], ...],
    ) -> None:
        """Know what is raised for an exit status and what where the host fails."""
        self._sandbox = sandbox
        self._lifetime_seconds = lifetime_seconds
        self._exited = exited
        self._errors = errors

    @property
    def id(self) -> str:
        """The host's name for it."""
        return self._sandbox.sandbox_id

    async def run(self, line: str, *, timeout: float) -> Ran:
        """Run a line by bash."""
        with lost(*self._errors):
            try:
                done = await self._sandbox.commands.run(line, timeout=timeout)
            except self._exited as error:
                ended: Any = error
                return Ran(int(ended.exit_code), str(ended.stdout), str(ended.stderr))
        return Ran(done.exit_code, done.stdout, done.stderr)

    async def read(self, path: str, *, limit: int) -> bytes:
        """Return a file; more than the limit is not fetched."""
        found = bytearray()
        with lost(*self._errors):
            async for piece in await self._sandbox.files.read(path, format="stream"):
                found += piece
                if len(found) >= limit:
                    break
        return bytes(found[:limit])

    async def write(self, path: str, data: bytes) -> None:
        """Write a file."""
        with lost(*self._errors):
            await self._sandbox.files.write(path, data)

    async def pause(self) -> bool:
        """Freeze the machine with all that runs on it."""
        with lost(*self._errors):
            await self._sandbox.pause()
        return True

    async def resume(self) -> None:
        """Thaw it."""
        with lost(*self._errors):
            await self._sandbox.connect(timeout=self._lifetime_seconds)

    async def end(self) -> None:
        """Give it back."""
        with lost(*self._errors):
            await self._sandbox.kill()


class E2bProvider:
    """Rents machines of E2B."""

    name = "e2b"
    scratch = "/home/user"
    names_hosts = True
    """Hosts can be admitted by name."""

    def __init__(
        self,
        package: E2bPackage,
        api_key: str,
        *,
        faults: tuple[type[Exception], ...] = (),
        options: Mapping[str, object] | None = None,
    ) -> None:
        """Use the loaded package.

        `faults` are what it lets through from below, `httpx.HTTPError`; `options` go along with
        every request, such as `domain`.
        """
        self._package = package
        self._options = {**(options or {}), "api_key": api_key}
        self._errors = (package.SandboxException, package.AuthenticationException, *faults)

    async def check(self) -> str:
        """List machines, which needs a key that is known."""
        with refused(*self._errors):
            await self._package.AsyncSandbox.list(limit=1, **self._options).next_items()
        return "its key is known"

    async def start(self, wish: MachineWish) -> E2bMachine:
        """Rent a machine."""
        network = self._network(wish)
        with refused(*self._errors):
            sandbox = await self._package.AsyncSandbox.create(
                template=wish.image,
                timeout=wish.lifetime_seconds,
                metadata=dict(wish.labels),
                **network,
                **self._options,
            )
        exited = self._package.CommandExitException
        return E2bMachine(sandbox, wish.lifetime_seconds, exited, self._errors)

    async def end(self, machine_id: str) -> None:
        """Give a machine back by its name."""
        with refused(*self._errors):
            await self._package.AsyncSandbox.kill(machine_id, **self._options)

    async def close(self) -> None:
        """Do nothing: the package keeps its own connections."""

    def _network(self, wish: MachineWish) -> Mapping[str, object]:
        """Return what shuts the network but for the hosts that are admitted."""
        hosts = [rule.host for rule in wish.egress.rules]
        if not hosts:
            return {"allow_internet_access": False}
        if not self.names_hosts:
            raise SandboxUnavailableError(
                f"Machines of {self.name} cannot be held to hosts by their names.",
                mend="Use another driver, or allow no hosts.",
            )
        return {"network": {"allow_out": hosts, "deny_out": [_EVERYTHING]}}
