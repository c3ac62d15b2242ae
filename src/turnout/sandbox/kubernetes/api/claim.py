"""Pods that agent-sandbox keeps warm: one claim per sandbox, against a configured pool.

The kinds are those of its API version v1beta1; the template of the pool is in deploy/.
"""

import asyncio
import time
from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from turnout.errors import SandboxUnavailableError
from turnout.sandbox.kubernetes.api.cluster import Cluster
from turnout.sandbox.kubernetes.api.pods import Ticket
from turnout.sandbox.kubernetes.manifests.labels import CLAIM
from turnout.sandbox.kubernetes.manifests.status import Meta
from turnout.sandbox.kubernetes.options import KubernetesOptions

__all__ = ["CORE_GROUP", "GROUP", "Claims"]

GROUP = "extensions.agents.x-k8s.io/v1beta1"
CORE_GROUP = "agents.x-k8s.io/v1beta1"

_POD_NAME = "agents.x-k8s.io/pod-name"
_LOOK_SECONDS = 5.0


class _Told(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, frozen=True)


class _Condition(_Told):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _Adopted(_Told):
    name: str = ""


class _ClaimStatus(_Told):
    conditions: tuple[_Condition, ...] = ()
    sandbox: _Adopted = _Adopted()


class _Claim(_Told):
    metadata: Meta = Meta()
    status: _ClaimStatus = _ClaimStatus()

    @property
    def ready(self) -> _Condition:
        """The condition that says whether its pod can be used."""
        return next((one for one in self.status.conditions if one.type == "Ready"), _Condition())


class _Sandbox(_Told):
    metadata: Meta = Meta()


class Claims:
    """Claims of one namespace on one pool."""

    def __init__(self, cluster: Cluster, options: KubernetesOptions, pool: str) -> None:
        self._cluster = cluster
        self._options = options
        self._pool = pool
        self._path = f"/apis/{GROUP}/namespaces/{options.namespace}/sandboxclaims"
        self._sandboxes = f"/apis/{CORE_GROUP}/namespaces/{options.namespace}/sandboxes"

    async def make(self, name: str, ticket: Ticket, lifetime_seconds: float) -> None:
        """Ask for a warm pod."""
        end = datetime.fromtimestamp(time.time() + lifetime_seconds, UTC)
        labels = {**ticket.labels(), CLAIM: name}
        body = {
            "apiVersion": GROUP,
            "kind": "SandboxClaim",
            "metadata": {"name": name, "labels": labels, "annotations": ticket.annotations()},
            "spec": {
                "warmPoolRef": {"name": self._pool},
                "lifecycle": {
                    "shutdownTime": end.strftime("%Y-%m-%dT%H:%M:%SZ"),
                    "shutdownPolicy": "Delete",
                },
                "additionalPodMetadata": {"labels": labels, "annotations": ticket.annotations()},
            },
        }
        await self._cluster.ask("POST", self._path, body=body)

    async def pod_of(self, name: str) -> str:
        """Wait for the pod of a claim; `SandboxUnavailableError` where that takes too long."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._options.start_seconds
        claim = await self._look(name)
        while claim.ready.status != "True":
            left = deadline - loop.time()
            if left <= 0:
                why = claim.ready.message or claim.ready.reason or "its controller says nothing"
                raise SandboxUnavailableError(
                    f"No warm pod came within {self._options.start_seconds:g} s: {why[:400]}.",
                    mend=f"Look at the pool with: kubectl describe sandboxwarmpool {self._pool}.",
                )
            claim = await self._next(name, claim, min(left, _LOOK_SECONDS))
        adopted = claim.status.sandbox.name or name
        answer = await self._cluster.ask("GET", f"{self._sandboxes}/{adopted}")
        return answer.read(_Sandbox).metadata.annotations.get(_POD_NAME) or adopted

    async def end(self, name: str) -> None:
        """Give a claim up, and its pod with it; it may be gone."""
        body = {"propagationPolicy": "Background"}
        await self._cluster.ask("DELETE", f"{self._path}/{name}", body=body, accept=(404, 409))

    async def _look(self, name: str) -> _Claim:
        return (await self._cluster.ask("GET", f"{self._path}/{name}")).read(_Claim)

    async def _next(self, name: str, claim: _Claim, seconds: float) -> _Claim:
        since = claim.metadata.resource_version
        changed = self._cluster.changed(self._path, name=name, since=since, seconds=seconds)
        return (await changed).read(_Claim)
