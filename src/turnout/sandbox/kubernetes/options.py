"""How sandboxes are made in a cluster: what an operator decides."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = ["KubernetesOptions", "ProxyAddress", "PullPolicy"]

PullPolicy = Literal["Always", "IfNotPresent", "Never"]


@dataclass(frozen=True, slots=True)
class ProxyAddress:
    """Where pods find the service's proxy, the only thing that some of them may reach."""

    host: str = ""
    """Address of the service's pod; empty: what its host name stands for, as in a pod it does."""
    port: int = 3128
    """First of its ports."""
    ports: int = 64
    """How many there are: each sandbox that may reach something has one."""
    namespace: str = "turnout"
    """Namespace of the service's pods."""
    listen: str = ""
    """Address that the service listens on; empty: every one."""


@dataclass(frozen=True, slots=True)
class KubernetesOptions:
    """What an operator decides about sandboxes in a cluster."""

    image: str
    """Image of the sandboxes: Python 3.8 or newer, bash, git, tar and coreutils."""
    namespace: str = "turnout-sandboxes"
    """Holds sandboxes and nothing else."""
    pull_policy: PullPolicy = "IfNotPresent"
    pull_secrets: tuple[str, ...] = ()
    """Names of Secrets that hold credentials of the image's registry."""
    runtime_class: str | None = None
    """RuntimeClass, such as one of gVisor or Kata; None takes the cluster's own."""
    seccomp: str | None = "turnout/sandbox.json"
    """Profile below the kubelet's seccomp folder; None takes the runtime's default."""
    uid: int | None = None
    """Uid and gid inside; None: 1000 in a user namespace, else one of its own for each pod."""
    user_namespaces: bool | None = None
    """None: asked for where the server is 1.33 or newer and there is no runtime class."""
    python: str = "/usr/bin/python3"
    """Path in the image."""
    memory_volume: bool = False
    """Keep the workspace in memory: its size is then a hard limit, and counts as memory."""
    node_selector: tuple[tuple[str, str], ...] = ()
    warm_pool: str | None = None
    """SandboxWarmPool to claim pods from, where agent-sandbox is installed."""
    proxy: ProxyAddress | None = None
    """None: no sandbox can reach anything."""
    kubeconfig: Path | None = None
    """None: the service account of the service's own pod."""
    context: str | None = None
    """Context of the kubeconfig; None takes its current one."""
    start_seconds: float = 120.0
    """How long a pod may take to run, its image's download included."""
