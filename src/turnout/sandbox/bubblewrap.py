"""Sandboxes by bubblewrap: Linux namespaces, a system call filter and control groups."""

import asyncio
import os
import platform
import shutil
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

from turnout.core.ids import RunId
from turnout.core.runs import Patch
from turnout.errors import SandboxDiedError, SandboxError, SandboxUnavailableError
from turnout.sandbox.bare import BASE_TREE, WorkspaceKind
from turnout.sandbox.base import (
    REPO,
    BaseRef,
    BaseSpec,
    Capabilities,
    Command,
    Exit,
    Limits,
    Mount,
    Output,
    Sandbox,
    SandboxUsage,
)
from turnout.sandbox.base_layer import find_layer, prepare_base
from turnout.sandbox.channel import Channel
from turnout.sandbox.collector import collect_patch
from turnout.sandbox.inside.handover import resident_source
from turnout.sandbox.resident_sandbox import ResidentSandbox
from turnout.sandbox.walls import seccomp
from turnout.sandbox.walls.arguments import FILES_INSIDE
from turnout.sandbox.walls.cgroup import Cgroup, CgroupParents, find_parents
from turnout.sandbox.walls.held import Held
from turnout.sandbox.walls.interpreter import COMPILE, Interpreter, candidates
from turnout.sandbox.walls.launch import Bubblewrap, Launched, find_bubblewrap, launch, why_not
from turnout.sandbox.walls.registry import Registry

__all__ = ["BubblewrapDriver", "BubblewrapSandbox"]

_START_SECONDS = 20.0
_COPY_SECONDS = 600.0
_COMPILED_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class _Walls:
    """What was found out about this machine."""

    bubblewrap: Bubblewrap
    machine: str
    cgroups: CgroupParents
    interpreter: Interpreter
    files: dict[str, bytes]
    """Programs handed in, by name."""

    @property
    def isolation(self) -> str:
        return f"namespaces+seccomp+{self.cgroups.name}"


class BubblewrapSandbox(ResidentSandbox):
    """A sandbox whose walls are those of `BubblewrapDriver`."""

    def __init__(
        self,
        run_id: RunId,
        walls: _Walls,
        channel: Channel,
        held: Held,
        differ: Callable[[Sandbox], Awaitable[Patch]] | None,
    ) -> None:
        find = (walls.interpreter.path, "-ISE", f"{FILES_INSIDE}/find.py")
        super().__init__(run_id, walls.isolation, channel, find)
        self._held = held
        self._differ = differ
        self._closing: asyncio.Task[None] | None = None
        self.python = walls.interpreter.path
        """Path inside of its own Python interpreter."""

    async def exec(self, command: Command) -> AsyncIterator[Output | Exit]:
        """Run a command and pass on what it prints; the last item is its `Exit`."""
        before = self._held.cgroup.oom_kills()
        async for item in super().exec(command):
            failed = isinstance(item, Exit) and item.reason == "exited" and item.code != 0
            if isinstance(item, Exit) and failed and self._held.cgroup.oom_kills() > before:
                yield replace(item, reason="oom")
            else:
                yield item

    async def diff(self) -> Patch:
        """Compare the workspace with its base commit, by a sandbox that the run never touched."""
        if self._differ is None:
            raise SandboxError("This sandbox has no base to compare with.")
        return await self._differ(self)

    async def usage(self) -> SandboxUsage:
        """Return what was used so far."""
        cgroup = self._held.cgroup
        wall = time.monotonic() - self._held.started
        return SandboxUsage(cgroup.cpu_seconds(), cgroup.peak_memory_bytes(), wall)

    def kill(self) -> None:
        """End process 1 inside at once, and with it everything there."""
        self._held.kill()

    async def close(self) -> None:
        """End everything inside and leave nothing behind; may be called twice."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._channel.end("it was closed")
        await self._channel.closed()
        await self._held.release()


class BubblewrapDriver:
    """Makes sandboxes with bubblewrap; walls are tried once, at the first use."""

    def __init__(self, state_dir: Path, *, bubblewrap: str | None = None) -> None:
        self._state_dir = state_dir
        self._program = bubblewrap or shutil.which("bwrap")
        self._registry = Registry(state_dir / "sandboxes")
        self._finding = asyncio.Lock()
        self._walls: _Walls | None = None

    @property
    def name(self) -> str:
        """The driver's name."""
        return "bubblewrap"

    @property
    def state_dir(self) -> Path:
        """Folder of the service's state."""
        return self._state_dir

    @property
    def python(self) -> str:
        """Path inside of the Python interpreter; known once a sandbox was started."""
        if self._walls is None:
            raise SandboxError("No sandbox was started yet.")
        return self._walls.interpreter.path

    async def start_bare(
        self,
        run_id: RunId,
        mounts: Sequence[Mount],
        limits: Limits,
        *,
        workspace: WorkspaceKind = "empty",
    ) -> BubblewrapSandbox:
        """Start a sandbox that shows exactly `mounts`; see `BareStarter`."""
        return await self._start(run_id, mounts, limits, workspace, None)

    async def probe(self) -> Capabilities:
        """Try the walls once and say of each whether it holds."""
        try:
            walls = await self._found()
        except SandboxUnavailableError as error:
            # The name of the fact comes before it, and a full stop after it.
            why = str(error).removeprefix("bubblewrap is ").removesuffix(".")
            fact = ("bubblewrap", False, why)
            return Capabilities(self.name, False, "none", (fact,))
        return Capabilities(self.name, True, walls.isolation, _facts(walls))

    async def prepare(self, spec: BaseSpec) -> BaseRef:
        """Make the base layer, or find it made."""
        return await prepare_base(self, spec)

    async def create(self, run_id: RunId, base: BaseRef, limits: Limits) -> BubblewrapSandbox:
        """Start a sandbox with a fresh workspace on `base`."""
        layer = find_layer(self._state_dir, base)

        async def differ(sandbox: Sandbox) -> Patch:
            return await collect_patch(self, sandbox, layer.history, layer.commit)

        return await self._start(run_id, layer.mounts, limits, "from_base", differ)

    async def reap(self, known: frozenset[RunId]) -> tuple[RunId, ...]:
        """End every sandbox of a run that is not known, after a crash of the service."""
        return await asyncio.to_thread(self._registry.reap, known)

    async def _found(self) -> _Walls:
        async with self._finding:
            if self._walls is None:
                self._walls = await asyncio.to_thread(_find_walls, self._program)
            return self._walls

    async def _start(
        self,
        run_id: RunId,
        mounts: Sequence[Mount],
        limits: Limits,
        workspace: WorkspaceKind,
        differ: Callable[[Sandbox], Awaitable[Patch]] | None,
    ) -> BubblewrapSandbox:
        walls = await self._found()
        async with AsyncExitStack() as undo:
            ours, theirs = socket.socketpair()
            undo.callback(ours.close)
            with theirs:
                held = self._launch(walls, run_id, mounts, limits, theirs.fileno())
            undo.push_async_callback(held.release)
            channel = await Channel.over(ours, held.kill)
            sandbox = BubblewrapSandbox(run_id, walls, channel, held, differ)
            undo.pop_all()
            undo.push_async_callback(sandbox.close)
            await held.adopt()
            await _await_agent(channel, held)
            if workspace == "from_base":
                await _copy_base(sandbox)
            undo.pop_all()
        return sandbox

    def _launch(
        self,
        walls: _Walls,
        run_id: RunId,
        mounts: Sequence[Mount],
        limits: Limits,
        channel_fd: int,
    ) -> Held:
        """Start the walls and the agent, registered so that a crash leaves nothing behind."""
        with ExitStack() as undo:
            entry = self._registry.add()
            undo.callback(entry.settle, removed=True)
            cgroup = Cgroup.make(walls.cgroups, entry.name, limits)
            undo.callback(cgroup.remove)
            entry.note(run_id, cgroup.folders)
            launched = _launch_agent(walls, mounts, limits, channel_fd)
            undo.pop_all()
        return Held(entry, cgroup, launched)


def _facts(walls: _Walls) -> tuple[tuple[str, bool, str], ...]:
    """Return what holds; only walls that a sandbox can do without may fail here."""
    nested = walls.bubblewrap.disables_userns
    return (
        ("bubblewrap", True, walls.bubblewrap.path),
        ("namespaces", True, "user, mount, process, network, ipc, host name"),
        ("system call filter", True, walls.machine),
        (
            "no nested user namespaces",
            nested,
            "refused by bubblewrap and by the filter"
            if nested
            else "only the filter refuses them: install bubblewrap 0.8 or newer",
        ),
        ("control groups", walls.cgroups.version > 0, walls.cgroups.advice or walls.cgroups.name),
        ("python inside", True, walls.interpreter.path),
    )


def _launch_agent(
    walls: _Walls, mounts: Sequence[Mount], limits: Limits, channel_fd: int
) -> Launched:
    numbers = (channel_fd, limits.pids, limits.open_files, limits.file_bytes, limits.memory_bytes)
    agent = (walls.interpreter.path, "-ISE", f"{FILES_INSIDE}/resident.pyc", *map(str, numbers))
    return launch(
        walls.bubblewrap,
        agent,
        machine=walls.machine,
        limits=limits,
        mounts=(*walls.interpreter.mounts, *mounts),
        files=walls.files,
        channel_fd=channel_fd,
    )


async def _await_agent(channel: Channel, held: Held) -> None:
    try:
        await channel.wait_ready(_START_SECONDS)
    except SandboxDiedError:
        raise why_not(held.complaints()) from None


async def _copy_base(sandbox: BubblewrapSandbox) -> None:
    """Copy the tree of the base layer into the workspace, modes and times kept."""
    copy = Command(("cp", "-a", f"{BASE_TREE}/.", REPO), timeout=_COPY_SECONDS)
    result = await sandbox.run(copy)
    if result.ok:
        return
    text = result.stderr.decode(errors="backslashreplace").strip().splitlines()
    mend = ""
    if "No space left" in " ".join(text):
        mend = (
            "The repository is larger than the sandbox's disk: raise `disk_mb` under `[sandbox]`."
        )
    why = text[-1] if text else result.exit.error or result.exit.reason
    raise SandboxUnavailableError(f"The workspace could not be made: {why}.", mend=mend)


def _find_walls(program: str | None) -> _Walls:
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
    bubblewrap = find_bubblewrap(program)
    failure = SandboxUnavailableError(
        "There is no Python 3.8 or newer for the inside of a sandbox.",
        mend="Run `sudo apt-get install python3`.",
    )
    for interpreter in candidates():
        try:
            compiled = _compile_resident(bubblewrap, machine, interpreter)
        except SandboxUnavailableError as error:
            failure = error
            continue
        folder = files("turnout.sandbox.inside")
        programs = {"resident.pyc": compiled, "find.py": (folder / "find.py").read_bytes()}
        return _Walls(bubblewrap, machine, find_parents(), interpreter, programs)
    raise failure


def _compile_resident(bubblewrap: Bubblewrap, machine: str, interpreter: Interpreter) -> bytes:
    """Compile the agent inside the walls, which tries them and the interpreter at once."""
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as compiled:
        try:
            script = f"{FILES_INSIDE}/resident.py"
            launched = launch(
                bubblewrap,
                (interpreter.path, "-ISE", "-c", COMPILE, script, str(writer)),
                machine=machine,
                limits=Limits(),
                mounts=interpreter.mounts,
                files={"resident.py": resident_source()},
                channel_fd=writer,
            )
        finally:
            os.close(writer)
        try:
            data = compiled.read(_COMPILED_BYTES)
            if launched.process.wait(_START_SECONDS) != 0 or not data:
                raise why_not(launched.complaints())
            return data
        finally:
            launched.process.kill()
            launched.process.wait()
            launched.close()
