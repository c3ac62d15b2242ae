"""The cluster, once it is reached, and what was found out about it."""

import asyncio
import re
from dataclasses import dataclass

from kubernetes_asyncio.client import Configuration
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from turnout.errors import SandboxUnavailableError
from turnout.sandbox.kubernetes.api.claim import Claims
from turnout.sandbox.kubernetes.api.cluster import Cluster, ClusterError, configuration_of
from turnout.sandbox.kubernetes.api.pods import Pods
from turnout.sandbox.kubernetes.manifests.policy import (
    DENY_ALL,
    TO_PROXY,
    Manifest,
    deny_all,
    to_proxy,
)
from turnout.sandbox.kubernetes.options import KubernetesOptions

__all__ = ["Access", "Found", "Version", "policies_of"]

_USER_NAMESPACES_SINCE = (1, 33)


class Version(BaseModel):
    """What the server says of itself."""

    model_config = ConfigDict(alias_generator=to_camel)

    major: str = ""
    minor: str = ""
    git_version: str = ""

    @property
    def number(self) -> tuple[int, int]:
        """Both numbers; some servers write a plus sign after the second."""
        numbers = [re.match(r"\d+", text) for text in (self.major, self.minor)]
        first, second = (int(found.group()) if found else 0 for found in numbers)
        return first, second


@dataclass(frozen=True, slots=True)
class Found:
    """A cluster that sandboxes can be started in."""

    cluster: Cluster
    pods: Pods
    claims: Claims | None
    user_namespaces: bool
    """A pod gets a user namespace of its own."""


def policies_of(options: KubernetesOptions) -> dict[str, Manifest]:
    """Return the network policies that must be there, by name."""
    needed = {DENY_ALL: deny_all()}
    if options.proxy is not None:
        needed[TO_PROXY] = to_proxy(options.proxy)
    return needed


class Access:
    """Reaches the cluster at the first use; closed by whoever made it."""

    def __init__(self, options: KubernetesOptions, configuration: Configuration | None) -> None:
        self._options = options
        self._configuration = configuration
        self._reaching = asyncio.Lock()
        self._cluster: Cluster | None = None
        self._found: Found | None = None

    async def close(self) -> None:
        """Close every connection."""
        if self._cluster is not None:
            await self._cluster.close()
            self._cluster = self._found = None

    async def cluster(self) -> Cluster:
        """Return the cluster; it may not answer."""
        if self._cluster is None:
            configuration = self._configuration or await configuration_of(self._options)
            self._cluster = Cluster(configuration)
        return self._cluster

    async def found(self) -> Found:
        """Return the cluster, its network policies made; `SandboxUnavailableError` without them."""
        async with self._reaching:
            if self._found is None:
                cluster = await self.cluster()
                version = (await cluster.ask("GET", "/version")).read(Version)
                await self._make_policies(cluster)
                self._found = self._describe(cluster, version)
            return self._found

    def _describe(self, cluster: Cluster, version: Version) -> Found:
        options = self._options
        wanted = options.user_namespaces
        if wanted is None:
            wanted = version.number >= _USER_NAMESPACES_SINCE and options.runtime_class is None
        pool = options.warm_pool
        claims = None if pool is None else Claims(cluster, options, pool)
        return Found(cluster, Pods(cluster, options), claims, wanted)

    async def _make_policies(self, cluster: Cluster) -> None:
        """Make what is missing: no sandbox is started where its network is not closed."""
        namespace = self._options.namespace
        path = f"/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies"
        for name, manifest in policies_of(self._options).items():
            if (await cluster.ask("GET", f"{path}/{name}", accept=(404,))).status != 404:
                continue
            try:
                await cluster.ask("POST", path, body=manifest, accept=(409,))
            except ClusterError as error:
                raise SandboxUnavailableError(
                    f"The network policy {name} is not there and cannot be made: {error.message}",
                    mend="Run `kubectl apply -f deploy/kubernetes/network.yaml`.",
                ) from None
