"""Finding out once what holds on this machine."""

import asyncio
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

from turnout.errors import SandboxUnavailableError
from turnout.sandbox.base import Limits, Mount
from turnout.sandbox.inside.handover import resident_source
from turnout.sandbox.walls import seccomp
from turnout.sandbox.walls.arguments import FILES_INSIDE
from turnout.sandbox.walls.cgroup import CgroupParents, find_parents
from turnout.sandbox.walls.contents import Contents
from turnout.sandbox.walls.identity import choose_identity
from turnout.sandbox.walls.interpreter import COMPILE, Interpreter, candidates
from turnout.sandbox.walls.launch import (
    Footing,
    Staging,
    empty_plan,
    find_bubblewrap,
    launch,
)
from turnout.sandbox.walls.launcher import Launcher, why_not
from turnout.sandbox.walls.stage import FIRST_FD, Overlay

__all__ = ["Walls", "find_walls", "try_stage"]

_START_SECONDS = 20.0
_COMPILED_BYTES = 1 << 20
_PROGRAMS = ("find.py", "snapshot.py")


@dataclass(frozen=True, slots=True)
class Walls:
    """What was found out about this machine."""

    footing: Footing
    cgroups: CgroupParents
    interpreter: Interpreter
    programs: dict[str, bytes]
    """Files that every sandbox is given, by name."""
    unstaged: str
    """Why trees cannot be laid over others, or there is no stage; empty where they can."""

    @property
    def isolation(self) -> str:
        """Short name of the walls."""
        return f"namespaces+seccomp+{self.cgroups.name}"

    def contents(self, mounts: Sequence[Mount]) -> Contents:
        """Return what shows, with the interpreter and our programs added."""
        return Contents((*self.interpreter.mounts, *mounts), files=self.programs)

    def facts(self) -> tuple[tuple[str, bool, str], ...]:
        """Return what holds; only walls that a sandbox can do without may fail here."""
        nested = self.footing.bubblewrap.disables_userns
        staged = self.footing.staging != "none"
        overlay = self.footing.staging == "overlay"
        return (
            ("bubblewrap", True, self.footing.bubblewrap.path),
            ("namespaces", True, "user, mount, process, network, ipc, host name"),
            ("system call filter", True, self.footing.machine),
            (
                "no nested user namespaces",
                nested,
                "refused by bubblewrap and by the filter"
                if nested
                else "only the filter refuses them: install bubblewrap 0.8 or newer",
            ),
            (
                "control groups",
                self.cgroups.version > 0,
                self.cgroups.advice or self.cgroups.name,
            ),
            ("freezer", True, "signals that no process can refuse"),
            ("disk cap", True, "one for all that a run writes" if staged else "one each folder"),
            (
                "file count cap",
                staged,
                "one for all that a run writes" if staged else self.unstaged,
            ),
            (
                "overlay workspace",
                overlay,
                "changes alone are kept"
                if overlay
                else f"copied instead: {self.unstaged} (root needs Linux 5.19, others 6.6)",
            ),
            ("python inside", True, self.interpreter.path),
        )


async def find_walls(program: str | None, launcher: Launcher, state_dir: Path) -> Walls:
    """Try the walls with each interpreter; `SandboxUnavailableError` where none does."""
    if platform.system() != "Linux":
        raise SandboxUnavailableError(
            "Sandboxes need Linux.", mend="Run Turnout in a Linux virtual machine."
        )
    machine = platform.machine()
    if machine not in seccomp.machines():
        raise SandboxUnavailableError(
            f"There is no system call filter for {machine}.", mend="Use x86_64 or aarch64."
        )
    # Before anything is started: a service that is alone in its group may have to move.
    cgroups = await asyncio.to_thread(find_parents)
    footing = Footing(launcher, await asyncio.to_thread(find_bubblewrap, program), machine)
    staging, unstaged = await try_stage(launcher, state_dir)
    footing = replace(footing, staging=staging)
    failure = SandboxUnavailableError(
        "There is no Python 3.8 or newer for the inside of a sandbox.",
        mend="Run `sudo apt-get install python3`.",
    )
    for interpreter in candidates():
        try:
            compiled = await _compile_resident(footing, interpreter)
        except SandboxUnavailableError as error:
            failure = error
            continue
        folder = files("turnout.sandbox.inside")
        programs = {name: folder.joinpath(name).read_bytes() for name in _PROGRAMS}
        programs["resident.pyc"] = compiled
        return Walls(footing, cgroups, interpreter, programs, unstaged)
    raise failure


async def try_stage(launcher: Launcher, state_dir: Path) -> tuple[Staging, str]:
    """Find out what a stage can hold, and why not more."""
    plan = empty_plan(Limits(), choose_identity(), ())
    lower = state_dir / "probe"
    (lower / "folder").mkdir(mode=0o755, parents=True, exist_ok=True)
    for path in (lower / "file", lower / "folder" / "file"):
        path.write_bytes(b"")
    try:
        overlay = [Overlay("repo", [str(lower)])]
        (await launcher.start(plan._replace(overlays=overlay), ())).close()
    except SandboxUnavailableError as error:
        reason = error.message.removeprefix("The sandbox did not start: ").rstrip(".")
    else:
        return "overlay", ""
    try:
        (await launcher.start(plan._replace(argv=["/bin/true"]), ())).close()
    except SandboxUnavailableError:
        return "none", reason
    return "folders", reason


async def _compile_resident(footing: Footing, interpreter: Interpreter) -> bytes:
    """Compile the agent inside the walls, which tries them and the interpreter at once."""
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as compiled:
        try:
            argv = (interpreter.path, "-ISE", "-c", COMPILE, f"{FILES_INSIDE}/resident.py")
            contents = Contents(interpreter.mounts, files={"resident.py": resident_source()})
            launched = await launch(
                footing, (*argv, str(FIRST_FD)), contents, Limits(), fds=(writer,)
            )
        finally:
            os.close(writer)
        started = launched.started
        try:
            loop = asyncio.get_running_loop()
            late = loop.call_later(_START_SECONDS, started.kill)
            data = await asyncio.to_thread(compiled.read, _COMPILED_BYTES)
            late.cancel()
            if not await started.ended(_START_SECONDS) or not data:
                raise why_not(started.complaints())
            return data
        finally:
            started.kill()
            launched.close()
