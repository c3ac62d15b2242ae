"""Sandboxes by bubblewrap: Linux namespaces, a system call filter and control groups."""

import asyncio
import shutil
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from turnout.core.ids import RunId
from turnout.errors import SandboxError, SandboxUnavailableError
from turnout.sandbox.bare import WorkspaceKind
from turnout.sandbox.base import (
    NO_EGRESS,
    REPO,
    VENV,
    BaseRef,
    BaseSpec,
    Capabilities,
    Command,
    Egress,
    LayerRef,
    Limits,
    Mount,
)
from turnout.sandbox.base_layer import BaseLayers, find_layer
from turnout.sandbox.confined import Beginning, ConfinedSandbox
from turnout.sandbox.egress.gate import EgressServices
from turnout.sandbox.resident_sandbox import Fittings
from turnout.sandbox.walls.arguments import FILES_INSIDE
from turnout.sandbox.walls.contents import COPY_BASE, laid_over
from turnout.sandbox.walls.held import Order, begin
from turnout.sandbox.walls.launcher import Launcher, why_not
from turnout.sandbox.walls.registry import Registry
from turnout.sandbox.walls.survey import Walls, find_walls
from turnout.sandbox.workspace.building import tidy
from turnout.sandbox.workspace.layers import Layers

__all__ = ["BubblewrapDriver", "BubblewrapSandbox"]

_COPY_SECONDS = 600.0
_NO_SERVICES = EgressServices()


class BubblewrapSandbox(ConfinedSandbox):
    """A sandbox whose walls are those of `BubblewrapDriver`."""


class BubblewrapDriver:
    """Makes sandboxes with bubblewrap; walls are tried once, at the first use."""

    def __init__(
        self,
        state_dir: Path,
        *,
        bubblewrap: str | None = None,
        egress: EgressServices = _NO_SERVICES,
        streams: bool = False,
    ) -> None:
        """Keep the `streams` of layers, for other machines."""
        self._state_dir = state_dir
        self._program = bubblewrap or shutil.which("bwrap")
        self._egress = egress
        self._registry = Registry(state_dir / "sandboxes")
        self._bases = BaseLayers()
        self._layers = Layers(state_dir, streams=streams)
        self._launcher = Launcher()
        self._finding = asyncio.Lock()
        self._walls: Walls | None = None

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
        egress: Egress = NO_EGRESS,
    ) -> BubblewrapSandbox:
        """Start a sandbox that shows exactly `mounts`; see `BareStarter`."""
        walls = await self._found()
        contents = walls.contents(mounts)
        copies = workspace == "from_base"
        if copies and not walls.unstaged:
            contents, copies = laid_over(contents, [REPO]), False
        return await self._start(walls, Order(run_id, contents, limits, egress), copies=copies)

    async def probe(self) -> Capabilities:
        """Try the walls once and say of each whether it holds."""
        try:
            walls = await self._found()
        except SandboxUnavailableError as error:
            # The name of the fact comes before it, and a full stop after it.
            why = str(error).removeprefix("bubblewrap is ").removesuffix(".")
            fact = ("bubblewrap", False, why)
            return Capabilities(self.name, False, "none", (fact,))
        facts = (
            *walls.facts(),
            ("egress", True, "to hosts that the policy allows, by a proxy of ours"),
            self._egress.secrets_fact,
        )
        return Capabilities(self.name, True, walls.isolation, facts)

    async def prepare(self, spec: BaseSpec) -> BaseRef:
        """Make the base layer, or find it made."""
        return await self._bases.prepare(self, spec)

    async def create(
        self,
        run_id: RunId,
        base: BaseRef,
        limits: Limits,
        *,
        egress: Egress = NO_EGRESS,
        layer: LayerRef | None = None,
    ) -> BubblewrapSandbox:
        """Start a sandbox with a fresh workspace on `base`, and on `layer` where one is given."""
        walls = await self._found()
        found = find_layer(self._state_dir, base)
        overlay = not walls.unstaged
        begun = Beginning(self, self._layers, base, limits, egress, layer, overlay)
        contents = walls.contents(found.mounts)
        if overlay:
            layers = [str(folder) for folder in await begun.layer_folders()]
            contents = laid_over(contents, [REPO, VENV], layers)
        order = Order(run_id, contents, limits, egress)
        copies = not overlay and found.tree is not None
        return await self._start(walls, order, copies=copies, begun=begun)

    async def reap(self, known: frozenset[RunId]) -> tuple[RunId, ...]:
        """End every sandbox of a run that is not known, after a crash of the service."""
        await tidy(self._state_dir)
        return await asyncio.to_thread(self._registry.reap, known)

    async def close(self) -> None:
        """End the process that starts sandboxes."""
        self._launcher.close()

    async def _found(self) -> Walls:
        async with self._finding:
            if self._walls is None:
                self._walls = await find_walls(self._program, self._launcher, self._state_dir)
            return self._walls

    async def _start(
        self, walls: Walls, order: Order, *, copies: bool, begun: Beginning | None = None
    ) -> BubblewrapSandbox:
        try:
            channel, held = await begin(walls, self._registry, self._egress, order)
        except OSError as error:
            raise why_not(error.strerror or str(error)) from error
        python = walls.interpreter.path
        find = (python, "-ISE", f"{FILES_INSIDE}/find.py")
        fittings = Fittings(
            order.run_id, walls.isolation, find, order.limits, held.variables, held.gate
        )
        sandbox = BubblewrapSandbox(fittings, channel, held, python, begun)
        async with AsyncExitStack() as undo:
            undo.push_async_callback(sandbox.close)
            if copies:
                await _copy_base(sandbox)
            if begun is not None:
                await begun.finish(sandbox)
            undo.pop_all()
        return sandbox


async def _copy_base(sandbox: BubblewrapSandbox) -> None:
    """Copy the tree of the base layer into the workspace, modes and times kept."""
    result = await sandbox.run(Command(shell=COPY_BASE, timeout=_COPY_SECONDS))
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
