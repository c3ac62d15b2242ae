"""Sandboxes on rented machines: one each."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from importlib.resources import files
from pathlib import Path

from turnout.core.ids import RunId
from turnout.core.runs import Patch
from turnout.errors import SandboxDiedError, SandboxError, SandboxUnavailableError
from turnout.sandbox.bare import WorkspaceKind
from turnout.sandbox.base import (
    NO_EGRESS,
    BaseRef,
    BaseSpec,
    Capabilities,
    Egress,
    LayerRef,
    Limits,
    Mount,
    Sandbox,
)
from turnout.sandbox.base_layer import find_layer, prepare_base
from turnout.sandbox.channel import Channel
from turnout.sandbox.collector import collect_patch
from turnout.sandbox.hosted.machine import HostedProvider, MachineWish
from turnout.sandbox.hosted.options import HostedOptions
from turnout.sandbox.hosted.roster import Roster
from turnout.sandbox.hosted.start import begin
from turnout.sandbox.resident_sandbox import Fittings, ResidentSandbox
from turnout.sandbox.transfer.base import lay_out, targets
from turnout.sandbox.transfer.folders import bring_back

__all__ = ["HostedDriver", "HostedSandbox"]

_NAMES = {"USER": "turnout", "LOGNAME": "turnout"}


class HostedSandbox(ResidentSandbox):
    """A sandbox whose walls are those of a machine of its own."""

    def __init__(self, fittings: Fittings, channel: Channel, undo: AsyncExitStack) -> None:
        """`undo` ends all that was made for it, the machine among it."""
        super().__init__(fittings, channel)
        self._undo = undo
        self._closing: asyncio.Task[None] | None = None
        self.differ: Callable[[Sandbox], Awaitable[Patch]] | None = None
        """Compares the workspace, where there is something to compare it with."""
        self.before_close: Callable[[Sandbox], Awaitable[None]] | None = None
        """Fetches what is to be kept."""

    async def diff(self) -> Patch:
        """Compare the workspace with its base commit, by a machine that the run never touched."""
        return await (super().diff() if self.differ is None else self.differ(self))

    async def close(self) -> None:
        """End everything inside and give the machine back; may be called twice."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        try:
            if self.before_close is not None:
                with suppress(SandboxDiedError):
                    await self.before_close(self)
        finally:
            await super().close()
            await self._undo.aclose()


class HostedDriver:
    """Makes sandboxes on machines of one host."""

    def __init__(
        self, state_dir: Path, provider: HostedProvider, options: HostedOptions | None = None
    ) -> None:
        self._state_dir = state_dir / provider.name
        self._provider = provider
        self._options = options or HostedOptions()
        self._roster = Roster(self._state_dir / "machines")
        find = files("turnout.sandbox.inside").joinpath("find.py").read_text("utf-8")
        self._find = (self._options.python, "-ISE", "-c", find)

    @property
    def name(self) -> str:
        """The host's name."""
        return self._provider.name

    @property
    def state_dir(self) -> Path:
        """Folder of what this driver keeps; none of it can be used by another kind of driver."""
        return self._state_dir

    @property
    def python(self) -> str:
        """Path inside of the Python interpreter."""
        return self._options.python

    async def probe(self) -> Capabilities:
        """Ask the host whether it admits us; no machine is rented for it."""
        try:
            known_as = await self._provider.check()
        except (SandboxError, SandboxUnavailableError) as error:
            fact = ("account", False, str(error).removesuffix("."))
            return Capabilities(self.name, False, "none", (fact,))
        facts = (
            ("account", True, known_as),
            ("walls", True, "those of the host: a machine for each sandbox"),
        )
        return Capabilities(self.name, True, self._isolation, facts)

    async def prepare(self, spec: BaseSpec) -> BaseRef:
        """Make the base layer, or find it made."""
        return await prepare_base(self, spec)

    async def start_bare(
        self,
        run_id: RunId,
        mounts: Sequence[Mount],
        limits: Limits,
        *,
        workspace: WorkspaceKind = "empty",
        egress: Egress = NO_EGRESS,
    ) -> HostedSandbox:
        """Start a sandbox and send it what `mounts` show; see `BareStarter`.

        What it made of writable ones is fetched when it is closed, as one file beneath the source.
        """
        sandbox = await self._start(run_id, limits, egress, targets(mounts, workspace))
        if any(mount.writable for mount in mounts):
            sandbox.before_close = lambda made: bring_back(made, mounts)
        return sandbox

    async def create(
        self,
        run_id: RunId,
        base: BaseRef,
        limits: Limits,
        *,
        egress: Egress = NO_EGRESS,
        layer: LayerRef | None = None,
    ) -> HostedSandbox:
        """Start a sandbox with a fresh workspace on `base`; there are no layers."""
        if layer is not None:
            raise SandboxError("Sandboxes on rented machines keep no layers.")
        found = find_layer(self._state_dir, base)
        sent = targets(found.mounts, found.workspace)
        sandbox = await self._start(run_id, limits, egress, sent)
        history = found.history
        if history is not None:
            sandbox.differ = lambda made: collect_patch(
                self, made, history, found.commit, under=found.under
            )
        return sandbox

    async def reap(self, known: frozenset[RunId]) -> tuple[RunId, ...]:
        """Give back the machines of runs that are not known, after a crash of the service."""
        reaped = set()
        for left in await asyncio.to_thread(self._roster.forsaken, known):
            if left.machine_id:
                await self._provider.end(left.machine_id)
                reaped.add(left.run_id)
            left.path.unlink(missing_ok=True)
        return tuple(sorted(reaped))

    async def close(self) -> None:
        """Close the connections to the host; sandboxes are closed before."""
        await self._provider.close()

    @property
    def _isolation(self) -> str:
        return f"machine of {self.name}"

    async def _start(
        self,
        run_id: RunId,
        limits: Limits,
        egress: Egress,
        sent: Sequence[tuple[Path, str]],
    ) -> HostedSandbox:
        _check_egress(egress)
        wish = MachineWish(
            self._options.image,
            math.ceil(limits.lifetime_seconds),
            (("turnout_run", run_id), *self._options.labels),
            egress,
        )
        async with AsyncExitStack() as undo:
            entry = self._roster.add()
            undo.callback(entry.settle)
            entry.note(run_id, "")
            machine = await self._provider.start(wish)
            undo.push_async_callback(machine.end)
            entry.note(run_id, machine.id)
            folder = f"{self._provider.scratch}/turnout"
            folders = [target for _, target in sent]
            channel = await begin(machine, folder, self.python, limits, folders, undo)
            variables = {**_NAMES, **dict(egress.variables)}
            fittings = Fittings(run_id, self._isolation, self._find, limits, variables)
            sandbox = HostedSandbox(fittings, channel, undo.pop_all())
            undo.push_async_callback(sandbox.close)
            await lay_out(sandbox, sent)
            undo.pop_all()
        return sandbox


def _check_egress(egress: Egress) -> None:
    """Refuse what no host of machines can hold for us."""
    if egress.secrets:
        raise SandboxUnavailableError(
            "Rented machines are given no bound secrets: they do not pass our proxy.",
            mend="Use another driver, or take the secrets out of the policy.",
        )
    if any(rule.private for rule in egress.rules):
        raise SandboxUnavailableError(
            "Rented machines do not reach hosts of your own network.",
            mend="Use another driver, or take the private hosts out of the policy.",
        )
