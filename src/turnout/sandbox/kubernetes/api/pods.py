"""Making the pods of sandboxes, waiting for them, ending them."""

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from secrets import token_hex

from aiohttp import ClientWebSocketResponse

from turnout.core.ids import RunId
from turnout.errors import SandboxError, SandboxUnavailableError
from turnout.sandbox.kubernetes.api.cluster import Answer, Cluster
from turnout.sandbox.kubernetes.manifests.labels import LEASE, RUN, labels_of, object_name
from turnout.sandbox.kubernetes.manifests.pod import RELAY, PodPlan, pod_spec, relay_command
from turnout.sandbox.kubernetes.manifests.status import Pod, is_running, why_ended, why_waiting
from turnout.sandbox.kubernetes.options import KubernetesOptions

__all__ = ["LEASE_SECONDS", "Pods", "Ticket", "lease"]

LEASE_SECONDS = 300.0
"""How long a pod is left alone after its service was last heard of."""

_MANNERS: Mapping[str, str] = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
}
_NOW = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
_CAUSE_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Ticket:
    """Whom a pod is made for."""

    run_id: RunId
    owner: str
    """Names the service; see `labels`."""
    reaches_proxy: bool = False

    def annotations(self) -> dict[str, str]:
        """Return what is noted on the pod."""
        return {RUN: self.run_id, LEASE: lease(), **_MANNERS}

    def new_name(self) -> str:
        """Return a name that no object had before."""
        return object_name(self.run_id, token_hex(4))

    def labels(self) -> dict[str, str]:
        """Return what the pod is found by."""
        return labels_of(self.owner, reaches_proxy=self.reaches_proxy)


def lease() -> str:
    """Return until when a pod is left alone, from now on."""
    return str(int(time.time() + LEASE_SECONDS))


class Pods:
    """The pods of one namespace."""

    def __init__(self, cluster: Cluster, options: KubernetesOptions) -> None:
        self._cluster = cluster
        self._options = options
        self.path = f"/api/v1/namespaces/{options.namespace}/pods"

    async def make(self, name: str, ticket: Ticket, plan: PodPlan) -> None:
        """Ask for a pod; it may not run yet."""
        metadata = {"labels": ticket.labels(), "annotations": ticket.annotations()}
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, **metadata},
            "spec": pod_spec(plan, self._options),
        }
        await self._cluster.ask("POST", self.path, body=body)

    async def await_running(self, name: str) -> None:
        """Wait until every container runs; `SandboxUnavailableError` where that takes too long."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._options.start_seconds
        pod = await self.look(name)
        while not is_running(pod):
            left = deadline - loop.time()
            if left <= 0:
                raise SandboxUnavailableError(
                    f"The pod of the sandbox did not start within "
                    f"{self._options.start_seconds:g} s: {why_waiting(pod)}.",
                    mend="Look at it with: kubectl describe pod.",
                )
            pod = await self._next(name, pod, min(left, 10.0))

    async def look(self, name: str) -> Pod:
        """Return what the cluster says of a pod now; of one that is gone, that it has ended."""
        return _read(await self._cluster.ask("GET", f"{self.path}/{name}", accept=(404,)))

    async def _next(self, name: str, pod: Pod, seconds: float) -> Pod:
        """Return a pod after its next change, or as it is after some time."""
        since = pod.metadata.resource_version
        changed = self._cluster.changed(self.path, name=name, since=since, seconds=seconds)
        return _read(await changed)

    async def open(self, name: str) -> ClientWebSocketResponse:
        """Execute the program that carries the channel in a pod's relay."""
        command = relay_command(self._options)
        return await self._cluster.execute(f"{self.path}/{name}", RELAY, command)

    async def cause_of_end(self, name: str) -> str:
        """Return why a pod ended; empty where the cluster does not say so soon."""
        with suppress(SandboxError, SandboxUnavailableError, TimeoutError):
            async with asyncio.timeout(_CAUSE_SECONDS):
                pod = await self.look(name)
                return why_ended(pod) or why_ended(await self._next(name, pod, _CAUSE_SECONDS))
        return ""

    async def renew(self, name: str) -> None:
        """Say that the service lives."""
        body = {"metadata": {"annotations": {LEASE: lease()}}}
        await self._cluster.ask("PATCH", f"{self.path}/{name}", body=body, accept=(404,))

    async def end(self, name: str) -> None:
        """End a pod at once; it may be gone."""
        await self._cluster.ask("DELETE", f"{self.path}/{name}", body=_NOW, accept=(404, 409))


def _read(answer: Answer) -> Pod:
    if answer.status == 404:
        gone = {"phase": "Failed", "reason": "Deleted", "message": "the pod was deleted"}
        return Pod.model_validate({"status": gone})
    return answer.read(Pod)
