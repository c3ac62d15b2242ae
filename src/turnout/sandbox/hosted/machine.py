"""What is needed of a host of machines, whoever it is."""

from dataclasses import dataclass
from typing import Protocol

from turnout.sandbox.base import Egress

__all__ = ["HostedMachine", "HostedProvider", "MachineWish", "Ran"]


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of a command line."""

    code: int | None
    """Exit status; None where it ran out of time or was killed."""
    stdout: str
    """The end of it at least."""
    stderr: str
    """The end of it at least."""


@dataclass(frozen=True, slots=True)
class MachineWish:
    """The machine that is wanted."""

    image: str | None
    """Template or image as the host names it; None takes the host's own."""
    lifetime_seconds: int
    labels: tuple[tuple[str, str], ...]
    """Shown in the host's console."""
    egress: Egress


class HostedMachine(Protocol):
    """One rented machine. Calls raise `SandboxError` where the host fails."""

    @property
    def id(self) -> str:
        """The host's name for it."""
        ...

    async def run(self, line: str, *, timeout: float) -> Ran:
        """Run a line by bash to its end, or for so many seconds."""
        ...

    async def read(self, path: str, *, limit: int) -> bytes:
        """Return a file, at most `limit` bytes of it."""
        ...

    async def write(self, path: str, data: bytes) -> None:
        """Write a file of any size beneath the provider's scratch folder."""
        ...

    async def pause(self) -> bool:
        """Freeze the whole machine; False where the host cannot."""
        ...

    async def resume(self) -> None:
        """Thaw it."""
        ...

    async def end(self) -> None:
        """Give it back; it may be gone."""
        ...


class HostedProvider(Protocol):
    """A host that machines are rented from."""

    @property
    def name(self) -> str:
        """As the settings call it."""
        ...

    @property
    def scratch(self) -> str:
        """Folder on its machines below which files of any size can be written."""
        ...

    async def check(self) -> str:
        """Return what it knows us by; `SandboxError` where it does not admit us."""
        ...

    async def start(self, wish: MachineWish) -> HostedMachine:
        """Rent a machine that runs; `SandboxUnavailableError` where there is none of this kind."""
        ...

    async def end(self, machine_id: str) -> None:
        """Give a machine back by its name; it may be gone."""
        ...

    async def close(self) -> None:
        """Close what is open to it; machines are ended before."""
        ...
