"""Sandboxes in a Kubernetes cluster: one pod each."""

import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from secrets import token_hex

from kubernetes_asyncio.client import Configuration
from pydantic import BaseModel

from turnout.core.ids import RunId
from turnout.core.runs import Patch
from turnout.errors import SandboxError, SandboxUnavailableError
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
from turnout.sandbox.base_layer import Layer, find_layer, prepare_base
from turnout.sandbox.collector import collect_patch
from turnout.sandbox.egress.gate import EgressServices
from turnout.sandbox.kubernetes.api.access import Access
from turnout.sandbox.kubernetes.door import Door
from turnout.sandbox.kubernetes.manifests.labels import CLAIM, LEASE, OWNER, SELECTOR, run_of
from turnout.sandbox.kubernetes.manifests.status import Pod, ended
from turnout.sandbox.kubernetes.options import KubernetesOptions
from turnout.sandbox.kubernetes.probe import Probe
from turnout.sandbox.kubernetes.sandbox import PodSandbox, Workspace
from turnout.sandbox.kubernetes.start import Start, Wish
from turnout.sandbox.transfer.base import lay_out, targets
from turnout.sandbox.transfer.folders import bring_back
from turnout.sandbox.transfer.layers import LAYERED, check_layer, restore, take

__all__ = ["KubernetesDriver"]


class _PodList(BaseModel):
    items: tuple[Pod, ...] = ()


class KubernetesDriver:
    """Makes sandboxes in one namespace of a cluster."""

    def __init__(
        self,
        state_dir: Path,
        options: KubernetesOptions,
        *,
        egress: EgressServices | None = None,
        configuration: Configuration | None = None,
    ) -> None:
        """Reach the cluster by `configuration`, or as the options say where there is none."""
        self._state_dir = state_dir / "kubernetes"
        self._options = options
        self._owner = token_hex(8)
        self._access = Access(options, configuration)
        self._door = Door(options.proxy, egress or EgressServices())
        self._begin = Start(options, self._owner, self._door)

    async def close(self) -> None:
        """Close the connections to the cluster; sandboxes are closed before."""
        await self._access.close()

    @property
    def name(self) -> str:
        """The driver's name."""
        return "kubernetes"

    @property
    def state_dir(self) -> Path:
        """Folder of what this driver keeps; none of it can be used by another kind of driver."""
        return self._state_dir

    @property
    def python(self) -> str:
        """Path inside of the Python interpreter."""
        return self._options.python

    async def start_bare(
        self,
        run_id: RunId,
        mounts: Sequence[Mount],
        limits: Limits,
        *,
        workspace: WorkspaceKind = "empty",
        egress: Egress = NO_EGRESS,
    ) -> PodSandbox:
        """Start a sandbox and send it what `mounts` show; see `BareStarter`.

        What it made of writable ones is fetched when it is closed, as one file beneath the source.
        """
        sent = targets(mounts, workspace)
        sandbox = await self._start(Wish(run_id, limits, egress, sent))
        if any(mount.writable for mount in mounts):
            sandbox.when_closing(lambda made: bring_back(made, mounts))
        return sandbox

    async def probe(self) -> Capabilities:
        """Ask the cluster what it allows, then try the walls in a pod."""
        return await Probe(self._options, self._access, self._begin)()

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
    ) -> PodSandbox:
        """Start a sandbox with a fresh workspace on `base`, and on `layer` where one is given."""
        prepared = find_layer(self._state_dir, base)
        file = None if layer is None else check_layer(self._state_dir, base, layer)
        sent = targets(prepared.mounts, prepared.workspace)
        if layer is not None:
            sent = tuple(one for one in sent if one[1] not in LAYERED)
        sandbox = await self._start(Wish(run_id, limits, egress, sent, warm=True), file)

        async def differ(of: Sandbox) -> Patch:
            return await self._differ(of, prepared)

        async def snapshot(of: Sandbox) -> LayerRef:
            return await take(of, self._state_dir, base.key, layer)

        async def fork(other: RunId, on: LayerRef) -> Sandbox:
            return await self.create(other, base, limits, egress=egress, layer=on)

        sandbox.stand_on(Workspace(differ, snapshot, fork))
        return sandbox

    async def reap(self, known: frozenset[RunId]) -> tuple[RunId, ...]:
        """End every sandbox of a run that is not known and whose service is gone.

        A service is gone where the pod has ended with its connection, or the lease has run out.
        """
        found = await self._access.found()
        query = {"labelSelector": SELECTOR}
        listed = (await found.cluster.ask("GET", found.pods.path, query=query)).read(_PodList)
        reaped = set()
        for pod in listed.items:
            run_id = run_of(pod.metadata.annotations)
            if not run_id or run_id in known or not self._forsaken(pod):
                continue
            claim = pod.metadata.labels.get(CLAIM)
            if claim is not None and found.claims is not None:
                await found.claims.end(claim)
            await found.pods.end(pod.metadata.name)
            reaped.add(run_id)
        return tuple(sorted(reaped))

    def _forsaken(self, pod: Pod) -> bool:
        lease = pod.metadata.annotations.get(LEASE, "")
        over = not lease.isdigit() or int(lease) < time.time()
        return pod.metadata.labels.get(OWNER) != self._owner and (over or ended(pod))

    async def _start(self, wish: Wish, layer: Path | None = None) -> PodSandbox:
        """Start a sandbox and fill it."""
        sandbox = await self._begin(await self._access.found(), wish)
        async with AsyncExitStack() as undo:
            undo.push_async_callback(sandbox.close)
            try:
                await lay_out(sandbox, wish.sent)
                if layer is not None:
                    await restore(sandbox, layer)
            except SandboxError as error:
                raise SandboxUnavailableError(
                    f"The sandbox could not be filled: {error.message}", mend=error.mend
                ) from error
            undo.pop_all()
        return sandbox

    async def _differ(self, sandbox: Sandbox, layer: Layer) -> Patch:
        if layer.history is None:
            raise SandboxError("This sandbox has no base to compare with.")
        return await collect_patch(self, sandbox, layer.history, layer.commit, under=layer.under)
