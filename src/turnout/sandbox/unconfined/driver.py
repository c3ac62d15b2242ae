"""Sandboxes that hold nothing back: commands run as the user does, in a folder of their own."""

import asyncio
import platform
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from turnout.core.ids import RunId
from turnout.core.runs import Patch
from turnout.errors import SandboxError, SandboxUnavailableError
from turnout.sandbox.bare import BASE_MORE, BASE_TREE, WorkspaceKind
from turnout.sandbox.base import (
    BASE_ENV,
    NO_EGRESS,
    NO_WALLS,
    PROJECT,
    REPO,
    VENV,
    BaseRef,
    BaseSpec,
    Capabilities,
    Command,
    Egress,
    Exit,
    LayerRef,
    Limits,
    Mount,
    Output,
    Sandbox,
)
from turnout.sandbox.base_layer import find_layer, prepare_base
from turnout.sandbox.channel import Channel
from turnout.sandbox.collector import collect_patch
from turnout.sandbox.egress.trust import ca_variables, read_trust
from turnout.sandbox.inside.handover import resident_source
from turnout.sandbox.resident_sandbox import Fittings, ResidentSandbox
from turnout.sandbox.unconfined.places import COPIED, Places
from turnout.sandbox.unconfined.process import MARK, AgentProcess, Folders
from turnout.sandbox.walls.interpreter import candidates

__all__ = ["UnconfinedDriver", "UnconfinedSandbox"]

_START_SECONDS = 20.0
_COPY_SECONDS = 600.0
_FACTS = (
    ("files", "everything that you may read or write, commands may"),
    ("processes", "commands may signal and inspect all of yours"),
    ("network", "it is yours, whatever the policy allows"),
    ("limits", "memory and file sizes hold for each process alone, disk space not at all"),
)

Differ = Callable[[Sandbox], Awaitable[Patch]]


class UnconfinedSandbox(ResidentSandbox):
    """Commands that run as ours do."""

    def __init__(
        self,
        fittings: Fittings,
        channel: Channel,
        places: Places,
        agent: AgentProcess,
        differ: Differ | None,
    ) -> None:
        super().__init__(fittings, channel)
        self._places = places
        self._agent = agent
        self._differ = differ
        self._closing: asyncio.Task[None] | None = None

    async def exec(self, command: Command) -> AsyncIterator[Output | Exit]:
        """Run a command and pass on what it prints; the last item is its `Exit`."""
        async for item in super().exec(self._places.command(command)):
            yield item

    async def diff(self) -> Patch:
        """Compare the workspace with its base commit, by an agent of its own."""
        return await (super().diff() if self._differ is None else self._differ(self))

    async def close(self) -> None:
        """End everything that was started and remove its folder; may be called twice."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        await super().close()
        await self._agent.release()


class UnconfinedDriver:
    """Makes sandboxes without walls. Nobody gets one who did not ask for it."""

    def __init__(self, state_dir: Path) -> None:
        # Base layers of other drivers name paths that only their walls show.
        self._state_dir = state_dir / "unconfined"
        self._folders = Folders(self._state_dir / "sandboxes")
        self._find = (self.python, "-ISE", "-c", _program("find.py"))
        self._source = resident_source()

    @property
    def name(self) -> str:
        """The driver's name."""
        return "none"

    @property
    def state_dir(self) -> Path:
        """Folder of base layers and workspaces."""
        return self._state_dir

    @property
    def python(self) -> str:
        """Path of the interpreter that environments are made of."""
        return next((each.path for each in candidates()), sys.executable)

    async def probe(self) -> Capabilities:
        """Say that nothing is isolated."""
        facts = tuple((name, False, f"not isolated: {why}") for name, why in _FACTS)
        return Capabilities(self.name, platform.system() == "Linux", NO_WALLS, facts)

    async def prepare(self, spec: BaseSpec) -> BaseRef:
        """Make the base layer, or find it made."""
        return await prepare_base(self, spec)

    async def create(
        self,
        run_id: RunId,
        base: BaseRef,
        limits: Limits,
        *,
        egress: Egress = NO_EGRESS,
        layer: LayerRef | None = None,
    ) -> UnconfinedSandbox:
        """Start a sandbox with a copy of the base; the network is open, whatever `egress` says."""
        if layer is not None:
            raise SandboxError("Sandboxes without walls keep no layers.")
        found = find_layer(self._state_dir, base)
        history = found.history

        async def differ(sandbox: Sandbox) -> Patch:
            if history is None:
                raise SandboxError("This sandbox has no base to compare with.")
            return await collect_patch(self, sandbox, history, found.commit, under=found.under)

        mounts = [
            replace(each, target=COPIED.get(each.target, each.target)) for each in found.mounts
        ]
        async with AsyncExitStack() as undo:
            sandbox = await self._start(run_id, mounts, limits, egress, differ)
            undo.push_async_callback(sandbox.close)
            targets = [mount.target for mount in mounts]
            if found.workspace == "from_base":
                await _fill(sandbox, targets)
            await _furnish(sandbox, targets, self.python)
            undo.pop_all()
        return sandbox

    async def start_bare(
        self,
        run_id: RunId,
        mounts: Sequence[Mount],
        limits: Limits,
        *,
        workspace: WorkspaceKind = "empty",
        egress: Egress = NO_EGRESS,
    ) -> UnconfinedSandbox:
        """Start a sandbox for which `mounts` have names; see `BareStarter`."""
        async with AsyncExitStack() as undo:
            sandbox = await self._start(run_id, mounts, limits, egress, None)
            undo.push_async_callback(sandbox.close)
            if workspace == "from_base":
                await _fill(sandbox, [mount.target for mount in mounts])
            undo.pop_all()
        return sandbox

    async def reap(self, known: frozenset[RunId]) -> tuple[RunId, ...]:
        """Remove what dead services left behind of runs that are not known."""
        return await asyncio.to_thread(self._folders.reap, known)

    async def close(self) -> None:
        """Do nothing: nothing is kept ready."""

    async def _start(
        self,
        run_id: RunId,
        mounts: Sequence[Mount],
        limits: Limits,
        egress: Egress,
        differ: Differ | None,
    ) -> UnconfinedSandbox:
        if egress.secrets:
            raise SandboxUnavailableError(
                "Without walls there is no proxy that puts secrets in for a sandbox.",
                mend="Use bubblewrap or containers, or take the secrets out of the policy.",
            )
        async with AsyncExitStack() as undo:
            claim = self._folders.claim(run_id)
            undo.push_async_callback(asyncio.to_thread, claim.settle)
            places = Places(claim.folder, {mount.target: mount.source for mount in mounts})
            places.make()
            ours, theirs = socket.socketpair()
            undo.callback(ours.close)
            with theirs:
                agent = AgentProcess.start(self._source, claim, places.repo, limits, theirs)
            variables = {**places.variables(BASE_ENV), **_trust(places, egress)}
            variables |= {**dict(egress.variables), MARK: claim.folder.name}
            fittings = Fittings(run_id, NO_WALLS, self._find, limits, variables)
            channel = await Channel.over(ours, lambda: None)
            sandbox = UnconfinedSandbox(fittings, channel, places, agent, differ)
            undo.pop_all()
            undo.push_async_callback(sandbox.close)
            await channel.wait_ready(_START_SECONDS)
            undo.pop_all()
        return sandbox


def _trust(places: Places, egress: Egress) -> Mapping[str, str]:
    """Let programs trust the user's own certificate authorities; return the variables for that."""
    if not egress.ca_files:
        return {}
    places.bundle.write_bytes(read_trust(egress.ca_files))
    return places.variables(ca_variables())


async def _fill(sandbox: UnconfinedSandbox, targets: Sequence[str]) -> None:
    """Copy what lies under the tree of a base layer into the workspace, then the tree."""
    under = [each for each in targets if each.startswith(f"{BASE_MORE}/")]
    for target in (*sorted(under, key=_depth, reverse=True), BASE_TREE):
        await _copy(sandbox, target, REPO)


def _depth(target: str) -> int:
    return int(target.rpartition("/")[2])


async def _furnish(sandbox: UnconfinedSandbox, targets: Sequence[str], python: str) -> None:
    """Copy the environment, so that what is installed stays with this sandbox."""
    for place, copied in COPIED.items():
        if copied in targets:
            await _copy(sandbox, copied, place)
    argv = (python, "-ISE", "-c", _program("relocate.py"), VENV, PROJECT, REPO)
    await _do(sandbox, argv)


async def _copy(sandbox: UnconfinedSandbox, source: str, target: str) -> None:
    await _do(sandbox, ("cp", "-a", "--reflink=auto", f"{source}/.", target))


async def _do(sandbox: UnconfinedSandbox, argv: tuple[str, ...]) -> None:
    result = await sandbox.run(Command(argv, timeout=_COPY_SECONDS))
    if not result.ok:
        said = result.stderr.decode(errors="backslashreplace").strip().splitlines()
        why = said[-1] if said else result.exit.error or result.exit.reason
        raise SandboxUnavailableError(f"The workspace could not be made: {why}.")


def _program(name: str) -> str:
    return files("turnout.sandbox.inside").joinpath(name).read_text("utf-8")
