"""What agent-sandbox does with pools and claims, as far as the driver sees it."""

from typing import Any
from uuid import uuid4

from turnout.testing.kubernetes.kubelet import Kubelet
from turnout.testing.kubernetes.store import Store

__all__ = ["WarmPods"]

Thing = dict[str, Any]

_POD_NAME = "agents.x-k8s.io/pod-name"


class WarmPods:
    """Pools of pods that run before they are claimed."""

    def __init__(self, store: Store, kubelet: Kubelet) -> None:
        self._store = store
        self._kubelet = kubelet
        self._idle: dict[str, list[str]] = {}

    async def fill(self, namespace: str, pool: str, template: Thing) -> None:
        """Add a pod of a template (metadata and spec) to a pool."""
        extensions = f"/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/{namespace}"
        pools = f"{extensions}/sandboxwarmpools"
        if self._store.get(pools, pool) is None:
            await self._store.add(pools, {"metadata": {"name": pool}})
        name = f"{pool}-{uuid4().hex[:6]}"
        metadata = {**template["metadata"], "name": name, "namespace": namespace}
        pod = {"metadata": metadata, "spec": template["spec"], "status": {"phase": "Pending"}}
        pods = _pods(namespace)
        self._kubelet.start(pods, await self._store.add(pods, pod))
        self._idle.setdefault(pool, []).append(name)

    async def claim(self, claims: str, claim: Thing) -> None:
        """Let a claim adopt an idle pod; without one it waits."""
        namespace = claims.split("/")[-2]
        idle = self._idle.get(claim["spec"]["warmPoolRef"]["name"])
        if not idle:
            told = {"type": "Ready", "status": "False", "reason": "NoPod", "message": "no pod"}
            waiting = {"status": {"conditions": [told]}}
            await self._store.merge(claims, claim["metadata"]["name"], waiting)
            return
        pod, name = idle.pop(), claim["metadata"]["name"]
        added = claim["spec"].get("additionalPodMetadata", {})
        await self._store.merge(_pods(namespace), pod, {"metadata": added})
        sandboxes = f"/apis/agents.x-k8s.io/v1beta1/namespaces/{namespace}/sandboxes"
        adopted = {"name": f"{name}-adopted", "annotations": {_POD_NAME: pod}}
        await self._store.add(sandboxes, {"metadata": adopted})
        ready = {"type": "Ready", "status": "True", "reason": "DependenciesReady"}
        status: Thing = {"conditions": [ready], "sandbox": {"name": adopted["name"]}}
        await self._store.merge(claims, name, {"status": status})

    async def give_up(self, claims: str, name: str) -> None:
        """End the pod of a claim."""
        namespace = claims.split("/")[-2]
        sandboxes = f"/apis/agents.x-k8s.io/v1beta1/namespaces/{namespace}/sandboxes"
        adopted = await self._store.remove(sandboxes, f"{name}-adopted")
        if adopted is not None:
            pod = adopted["metadata"]["annotations"][_POD_NAME]
            await self._kubelet.stop(_pods(namespace), pod)
            await self._store.remove(_pods(namespace), pod)


def _pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"
