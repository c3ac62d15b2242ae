"""What is known of engine, image and machine once they have been asked."""

import asyncio
import base64
import platform
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from turnout.errors import SandboxUnavailableError
from turnout.sandbox.container.engines.engine import Engine
from turnout.sandbox.container.engines.find import find_engine
from turnout.sandbox.container.engines.look import PROFILE, check, find_image, hand_in, look
from turnout.sandbox.container.options import ContainerOptions
from turnout.sandbox.walls import seccomp
from turnout.sandbox.walls.launcher import Launcher
from turnout.sandbox.walls.survey import try_stage

__all__ = ["Survey", "survey"]

_PROGRAMS = ("find.py", "snapshot.py")


@dataclass(frozen=True, slots=True)
class Survey:
    """What was found out about engine, image and machine."""

    engine: Engine
    options: ContainerOptions
    image: str
    """Id of the image, which its name may lead elsewhere from later."""
    python: str
    """Path inside."""
    version: str
    profile: Path
    """The system call filter."""
    programs: dict[str, bytes]
    """Files that every sandbox is given, by name."""
    filtered: bool
    """The filter holds; it must, unless the runtime has a kernel of its own."""
    limited: bool
    """Memory, processes and CPU of a whole container are limited."""
    unstaged: str
    """Why trees cannot be laid over others; empty where they can."""

    @property
    def direct(self) -> bool:
        """Whether containers are given the channel itself."""
        engine = self.engine
        return engine.is_podman and engine.shares_kernel and not self.options.piped

    @property
    def isolation(self) -> str:
        """Short name of the walls."""
        engine = self.engine
        limits = f"cgroup-{engine.cgroups}" if self.limited else "rlimits"
        walls = [engine.name, engine.runtime, *(["seccomp"] if self.filtered else []), limits]
        return "+".join(walls)

    def facts(self) -> tuple[tuple[str, bool, str], ...]:
        """Return what holds; only walls that a sandbox can do without may fail here."""
        engine = self.engine
        owner = "its user, in a user namespace" if engine.rootless else "a uid of each run's own"
        channel = "direct" if self.direct else "through the engine's client"
        copied = f"{self.unstaged}: it is copied, and `/venv` is read-only"
        return (
            ("engine", True, f"{engine.name} {engine.version}: {engine.program}"),
            ("image", True, f"{self.options.image}: {self.image.removeprefix('sha256:')[:12]}"),
            ("runtime", True, engine.runtime),
            (
                "system call filter",
                True,
                "our own" if self.filtered else f"the kernel is {engine.runtime}'s own",
            ),
            ("processes run as", True, owner),
            (
                "control groups",
                self.limited,
                engine.cgroups
                if self.limited
                else "memory, processes and CPU of a container are limited per process only: "
                "use cgroup v2 and delegate its controllers, or run as root",
            ),
            (
                "overlay workspace",
                not self.unstaged,
                copied if self.unstaged else "changes alone are kept",
            ),
            ("channel", True, channel),
            ("limits of processes", True, ", ".join(self.options.ulimits) or "no others needed"),
            ("python inside", True, f"{self.python} {self.version}"),
        )


async def survey(options: ContainerOptions, state_dir: Path, launcher: Launcher) -> Survey:
    """Find out whether containers can be used; `SandboxUnavailableError` says why not."""
    machine = platform.machine()
    if machine not in seccomp.machines():
        raise SandboxUnavailableError(
            f"There is no system call filter for {machine}.", mend="Use x86_64 or aarch64."
        )
    engine = await find_engine(options)
    image = await find_image(engine, options.image)
    folder = await asyncio.to_thread(hand_in, state_dir, machine)
    found = await look(engine, options, image, folder)
    check(found, engine, options.image, machine)
    # A limit of the host's kernel shows inside where it holds.
    limited = engine.limits and (not engine.shares_kernel or found.memory_limit is not None)
    unstaged = _without_stage(engine)
    if not unstaged:
        staging, unstaged = await try_stage(launcher, state_dir)
        if staging == "none":
            raise SandboxUnavailableError(
                f"The workspace cannot be laid out: {unstaged}.",
                mend="Allow mounts: run Turnout as root outside of another container.",
            )
    inside = files("turnout.sandbox.inside")
    programs = {name: inside.joinpath(name).read_bytes() for name in _PROGRAMS}
    programs["resident.pyc"] = base64.b64decode(found.agent)
    return Survey(
        engine,
        options,
        image,
        found.python,
        found.version,
        folder / PROFILE,
        programs,
        found.filtered,
        limited,
        unstaged,
    )


def _without_stage(engine: Engine) -> str:
    """Return why an engine finds nothing that we mount; empty where it does."""
    if not engine.is_podman:
        return "Docker's daemon sees no mounts of ours"
    return "without root Podman sees no mounts of ours" if engine.rootless else ""
