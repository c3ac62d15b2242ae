"""A container engine: its program, what it is like, and the short calls to it."""

from collections.abc import Sequence
from dataclasses import dataclass

from turnout.sandbox.container.options import EngineName
from turnout.sandbox.workspace.process import Finished, run_program

__all__ = ["Engine"]

_CALL_SECONDS = 60.0
_HOST_KERNEL = ("crun", "runc", "youki")
_GONE = ("no such container", "no container with", "no such volume", "already in progress")


@dataclass(frozen=True, slots=True)
class Engine:
    """A container engine that answers."""

    name: EngineName
    program: str
    """Absolute path."""
    version: str
    runtime: str
    """Name of the OCI runtime that containers are run by."""
    rootless: bool = False
    """Its containers belong to the user who starts them, in a user namespace."""
    limits: bool = True
    """It can limit memory, processes and CPU of a container."""
    cgroups: str = "v2"
    labels: bool = False
    """SELinux labels keep containers from folders of the host."""

    @property
    def is_podman(self) -> bool:
        """Whether it has Podman's options."""
        return self.name == "podman"

    @property
    def shares_kernel(self) -> bool:
        """Whether the runtime runs containers on the host's kernel.

        Others put a kernel of their own between: a filter of ours need not shield the host's, and
        no descriptor gets across.
        """
        return self.runtime in _HOST_KERNEL

    def command(self, runtime: str, words: Sequence[str]) -> list[str]:
        """Return the command line that starts a container, by `runtime` unless that is empty."""
        if self.is_podman:
            return [self.program, *([f"--runtime={runtime}"] if runtime else []), "run", *words]
        return [self.program, "run", *([f"--runtime={runtime}"] if runtime else []), *words]

    async def call(self, *words: str, timeout: float = _CALL_SECONDS) -> Finished:
        """Run one of its commands to the end."""
        return await run_program([self.program, *words], timeout=timeout)

    async def remove(self, name: str, *, volume: bool) -> bool:
        """End a container and remove it, with the volume of its name; True where both are gone."""
        at_once = ["--time=0"] if self.is_podman else []
        done = [await self.call("rm", "--force", "--volumes", *at_once, name)]
        if volume:
            done.append(await self.call("volume", "rm", "--force", name))
        return all(each.ok or _is_gone(each) for each in done)

    async def names(self, label: str) -> frozenset[str]:
        """Return the names of all containers that bear a label, running or not."""
        filters = ("--all", "--filter", f"label={label}", "--format", "{{.Names}}")
        done = await self.call("ps", *filters)
        return frozenset(done.stdout.decode(errors="replace").split())


def _is_gone(done: Finished) -> bool:
    return any(each in done.stderr.lower() for each in _GONE)
