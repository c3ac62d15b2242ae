"""Sandboxes by Podman or Docker: containers with options and a system call filter of our own."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import Self

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
    Egress,
    LayerRef,
    Limits,
    Mount,
)
from turnout.sandbox.base_layer import BaseLayers, find_layer
from turnout.sandbox.channel import Channel
from turnout.sandbox.confined import Beginning, ConfinedSandbox
from turnout.sandbox.container.begin import Order, begin
from turnout.sandbox.container.engines.survey import Survey, survey
from turnout.sandbox.container.held import Held
from turnout.sandbox.container.options import ContainerOptions
from turnout.sandbox.container.warm import Wanted, WarmShelf
from turnout.sandbox.container.yard import Yard
from turnout.sandbox.egress.gate import EgressServices, open_gate
from turnout.sandbox.resident_sandbox import Fittings
from turnout.sandbox.walls.arguments import FILES_INSIDE
from turnout.sandbox.walls.contents import Contents, laid_over
from turnout.sandbox.walls.launcher import Launcher
from turnout.sandbox.walls.registry import Registry
from turnout.sandbox.workspace.building import tidy
from turnout.sandbox.workspace.folders import private, short_hash, traversable
from turnout.sandbox.workspace.layers import Layers

__all__ = ["ContainerDriver"]

_NO_SERVICES = EgressServices()
_DEFAULTS = ContainerOptions()


@dataclass(frozen=True, slots=True)
class _Found:
    """What a driver works with once its engine is known."""

    survey: Survey
    yard: Yard
    state_dir: Path
    layers: Layers


class ContainerDriver:
    """Makes sandboxes with Podman or Docker; the engine is asked once, at the first use.

    Used as a context manager, or closed, it leaves no container behind that was started ahead.
    """

    def __init__(
        self,
        state_dir: Path,
        *,
        options: ContainerOptions = _DEFAULTS,
        egress: EgressServices = _NO_SERVICES,
        streams: bool = False,
    ) -> None:
        """Keep the `streams` of layers, for other machines."""
        # Base layers are made for the Python of an image, and name paths that only that has.
        self._folder = state_dir / "containers"
        self._options = options
        self._streams = streams
        self._egress = egress
        self._launcher = Launcher(clients=True)
        self._registry = Registry(self._folder / "running")
        self._finding = asyncio.Lock()
        self._known: _Found | None = None
        self._bases = BaseLayers()
        self._shelf = WarmShelf(options.warm, options.warm_bases, self._start_ahead)

    @property
    def name(self) -> str:
        """The driver's name."""
        return "container"

    @property
    def state_dir(self) -> Path:
        """Folder of what belongs to the image; known once a container was started."""
        return self._once_known().state_dir

    @property
    def python(self) -> str:
        """Path inside of the Python interpreter; known once a container was started."""
        return self._once_known().survey.python

    async def __aenter__(self) -> Self:
        """Return it as it is."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        await self.close()

    async def close(self) -> None:
        """Remove the containers that were started ahead; those of runs are not touched."""
        await self._shelf.close()
        self._launcher.close()

    async def probe(self) -> Capabilities:
        """Ask the engine once, try a container, and say of each wall whether it holds."""
        try:
            found = await self._found()
        except SandboxUnavailableError as error:
            why = str(error).removesuffix(".")
            return Capabilities(self.name, False, "none", (("containers", False, why),))
        facts = (
            *found.survey.facts(),
            _egress_fact(found.survey),
            self._egress.secrets_fact,
        )
        return Capabilities(self.name, True, found.survey.isolation, facts)

    async def prepare(self, spec: BaseSpec) -> BaseRef:
        """Make the base layer, or find it made."""
        await self._found()
        return await self._bases.prepare(self, spec)

    async def warm_up(self, base: BaseRef, limits: Limits) -> None:
        """Start as many containers ahead for `base` as the options say, and wait for them."""
        await self._shelf.filled(Wanted(base, limits))

    async def create(
        self,
        run_id: RunId,
        base: BaseRef,
        limits: Limits,
        *,
        egress: Egress = NO_EGRESS,
        layer: LayerRef | None = None,
    ) -> ConfinedSandbox:
        """Take a container that was started ahead, or start one on `base` and on `layer`."""
        found = await self._found()
        begun = self._beginning(found, base, limits, egress, layer)
        order = await _order_for(found, begun, run_id)
        async with AsyncExitStack() as undo:
            sandbox = await self._open(found, order, begun)
            undo.push_async_callback(sandbox.close)
            await begun.finish(sandbox)
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
    ) -> ConfinedSandbox:
        """Start a sandbox that shows exactly `mounts`; see `BareStarter`."""
        found = await self._found()
        contents = Contents(tuple(mounts), files=found.survey.programs)
        copies = workspace == "from_base"
        if copies and not found.survey.unstaged:
            contents, copies = laid_over(contents, [REPO]), False
        return await self._open(found, Order(run_id, contents, limits, egress, copies))

    async def reap(self, known: frozenset[RunId]) -> tuple[RunId, ...]:
        """End every sandbox of a run that is not known, after a crash of the service."""
        try:
            found = await self._found()
        except SandboxUnavailableError:
            return ()
        await tidy(found.state_dir)
        orphans = await asyncio.to_thread(self._registry.orphans, known)
        for entry, _ in orphans:
            await found.yard.remove(entry)
        await found.yard.remove_strays()
        return tuple(sorted({run_id for _, run_id in orphans} - {RunId("")}))

    def _once_known(self) -> _Found:
        if self._known is None:
            raise SandboxError("No sandbox was started yet.")
        return self._known

    async def _found(self) -> _Found:
        async with self._finding:
            if self._known is None:
                self._known = await self._find()
            return self._known

    async def _find(self) -> _Found:
        folder = traversable(self._folder)
        surveyed = await survey(self._options, folder, self._launcher)
        yard = Yard(
            surveyed,
            self._launcher,
            self._registry,
            private(folder / "own"),
            f"turnout.state={short_hash(str(folder.resolve()))}",
        )
        state_dir = traversable(folder / short_hash(surveyed.image))
        return _Found(surveyed, yard, state_dir, Layers(state_dir, streams=self._streams))

    async def _start_ahead(self, wanted: Wanted) -> tuple[Channel, Held]:
        found = await self._found()
        begun = self._beginning(found, wanted.base, wanted.limits, NO_EGRESS, None)
        order = await _order_for(found, begun, RunId(f"warm-{token_hex(6)}"))
        return await begin(found.yard, order, listens=found.survey.engine.shares_kernel)

    def _beginning(
        self, found: _Found, base: BaseRef, limits: Limits, egress: Egress, layer: LayerRef | None
    ) -> Beginning:
        overlay = not found.survey.unstaged
        return Beginning(self, found.layers, base, limits, egress, layer, overlay)

    async def _open(
        self, found: _Found, order: Order, begun: Beginning | None = None
    ) -> ConfinedSandbox:
        """Start a container, or take one that was started ahead for the same beginning."""
        async with AsyncExitStack() as undo:
            gate = open_gate(self._egress, order.egress)
            if gate is not None:
                undo.push_async_callback(gate.close)
                if not found.survey.engine.shares_kernel:
                    raise SandboxUnavailableError(
                        f"Nothing can be reached from containers of {found.survey.engine.runtime}.",
                        mend="Choose the `runtime` runc or crun, or a policy without egress.",
                    )
            ready = None
            if begun is not None and begun.layer is None:
                ready = self._shelf.claim(Wanted(begun.base, begun.limits))
            channel, held = ready or await begin(found.yard, order, listens=gate is not None)
            undo.push_async_callback(held.release)
            undo.push_async_callback(channel.closed)
            undo.callback(channel.end, "it did not start")
            await held.assign(order.run_id, order.egress, gate)
            find = (found.survey.python, "-ISE", f"{FILES_INSIDE}/find.py")
            fittings = Fittings(
                order.run_id,
                found.survey.isolation,
                find,
                order.limits,
                held.variables,
                gate,
            )
            sandbox = ConfinedSandbox(fittings, channel, held, self.python, begun)
            undo.pop_all()
        return sandbox


def _egress_fact(survey: Survey) -> tuple[str, bool, str]:
    if survey.engine.shares_kernel:
        return ("egress", True, "to hosts that the policy allows, by a proxy of ours")
    why = f"{survey.engine.runtime} hands no socket of a container's network over"
    return ("egress", False, f"none: {why}")


async def _order_for(found: _Found, begun: Beginning, run_id: RunId) -> Order:
    """Return what is to be started for a base and a layer on it."""
    base = find_layer(found.state_dir, begun.base)
    contents = Contents(base.mounts, files=found.survey.programs)
    if begun.overlay:
        layers = [str(each) for each in await begun.layer_folders()]
        contents = laid_over(contents, [REPO, VENV], layers)
    copies = not begun.overlay and base.tree is not None
    return Order(run_id, contents, begun.limits, begun.egress, copies)
