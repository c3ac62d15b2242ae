"""The pod of one sandbox, as it is asked of the cluster.

Two containers: the sandbox's own, whose process 1 becomes the resident agent, and a relay, into
which the host executes the program that carries the channel. The relay shares one folder with the
sandbox, and nothing else: no process of the sandbox can see or signal it, and unlike the output of
a container's main process, what passes through it is in no log of the cluster.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from turnout.sandbox.bare import BASE_GIT, BASE_TREE
from turnout.sandbox.base import BASE_ENV, REPO, VENV, WORKSPACE, Limits
from turnout.sandbox.kubernetes.options import KubernetesOptions

__all__ = ["AGENT", "RELAY", "Manifest", "PodPlan", "pod_spec", "relay_command"]

AGENT = "sandbox"
"""Name of the container that everything runs in."""

RELAY = "relay"
"""Name of the container that carries the channel."""

_SOCKET = "/run/turnout/agent.sock"
_FOLDERS = (REPO, VENV, BASE_ENV["TMPDIR"], BASE_TREE, BASE_GIT)
_CONNECT_SECONDS = 20
_MIB = 1 << 20
_OVERHEAD = 96 * _MIB
"""Memory of the agent beside what the run may use, and room for the logs of a container."""
_SHARE = 0.25
"""What is asked of a node for good, of what may be used: most sandboxes wait most of the time."""
_SMALL = {"cpu": "200m", "memory": "64Mi", "ephemeral-storage": "64Mi"}
_HOLD = "trap 'exit 0' TERM; sleep infinity & wait"
_EXEC = 'exec "$0" -ISE -c "$PROGRAM" "$@"'

Manifest = dict[str, object]


@dataclass(frozen=True, slots=True)
class PodPlan:
    """What one pod is made for."""

    limits: Limits
    uid: int
    user_namespace: bool
    """It gets a user namespace of its own."""
    folders: tuple[str, ...] = ()
    """Paths that it is sent, beside the workspace and its base."""
    base_bytes: int = 0
    """Room for what it is sent, beside the run's own disk."""
    patience: int = 0
    """Seconds within which the host must come; 0 for a pod that waits to be claimed."""


def pod_spec(plan: PodPlan, options: KubernetesOptions) -> Manifest:
    """Return the `spec` of a sandbox's pod."""
    seconds = max(1, math.ceil(plan.limits.lifetime_seconds)) + plan.patience
    spec: Manifest = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": seconds,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "hostNetwork": False,
        "hostPID": False,
        "hostIPC": False,
        "shareProcessNamespace": False,
        "hostname": "sandbox",
        "dnsPolicy": "None",
        "dnsConfig": {"nameservers": ["127.0.0.1"]},
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": plan.uid,
            "runAsGroup": plan.uid,
            "fsGroup": plan.uid,
            "seccompProfile": _seccomp(options),
        },
        "initContainers": [_container("folders", _make_folders(plan), _room(), options)],
        "containers": [_agent(plan, options), _relay(options)],
        "volumes": [{"name": "work", "emptyDir": _volume(plan, options)}],
    }
    if plan.user_namespace:
        spec["hostUsers"] = False
    if options.runtime_class is not None:
        spec["runtimeClassName"] = options.runtime_class
    if options.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in options.pull_secrets]
    if options.node_selector:
        spec["nodeSelector"] = dict(options.node_selector)
    return spec


def relay_command(options: KubernetesOptions) -> list[str]:
    """Return what is executed in the relay to carry the channel."""
    return ["/bin/sh", "-c", _EXEC, options.python, _SOCKET, str(_CONNECT_SECONDS)]


def _agent(plan: PodPlan, options: KubernetesOptions) -> Manifest:
    limits = plan.limits
    most = {
        "cpu": f"{max(1, round(limits.cpus * 1000))}m",
        "memory": str(_memory(plan, options)),
        "ephemeral-storage": str(_disk(plan) + _OVERHEAD),
    }
    least = {
        "cpu": f"{max(1, round(limits.cpus * 1000 * _SHARE))}m",
        "memory": str(round(_memory(plan, options) * _SHARE)),
        "ephemeral-storage": str(round((_disk(plan) + _OVERHEAD) * _SHARE)),
    }
    command = [options.python, "-ISE", "-c", _program("boot"), _SOCKET, str(plan.patience)]
    container = _container(AGENT, command, _mounts(plan), options)
    return {**container, "workingDir": REPO, "resources": {"limits": most, "requests": least}}


def _relay(options: KubernetesOptions) -> Manifest:
    mounts = [_mount("/run/turnout")]
    container = _container(RELAY, ["/bin/sh", "-c", _HOLD], mounts, options)
    return {**container, "env": [{"name": "PROGRAM", "value": _program("relay")}]}


def _container(
    name: str, command: Sequence[str], mounts: list[Manifest], options: KubernetesOptions
) -> Manifest:
    return {
        "name": name,
        "image": options.image,
        "imagePullPolicy": options.pull_policy,
        "command": list(command),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "privileged": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "resources": {"limits": dict(_SMALL), "requests": {**_SMALL, "cpu": "10m"}},
        "volumeMounts": mounts,
    }


def _make_folders(plan: PodPlan) -> list[str]:
    """Make every folder before it is mounted, so that the run's uid owns it, as git demands."""
    return ["/bin/mkdir", "-p", *(f"/volume/{_part(path)}" for path in _paths(plan))]


def _room() -> list[Manifest]:
    return [{"name": "work", "mountPath": "/volume"}]


def _paths(plan: PodPlan) -> list[str]:
    return [*dict.fromkeys(("/run/turnout", *_FOLDERS, *plan.folders))]


def _mounts(plan: PodPlan) -> list[Manifest]:
    same = {**_mount(REPO), "mountPath": WORKSPACE}
    return [*(_mount(path) for path in _paths(plan)), same]


def _mount(path: str) -> Manifest:
    return {"name": "work", "mountPath": path, "subPath": _part(path)}


def _part(path: str) -> str:
    return path.strip("/").replace("/", "-")


def _volume(plan: PodPlan, options: KubernetesOptions) -> Mapping[str, str]:
    size = {"sizeLimit": str(_disk(plan))}
    return {**size, "medium": "Memory"} if options.memory_volume else size


def _disk(plan: PodPlan) -> int:
    return plan.limits.disk_bytes + plan.base_bytes


def _memory(plan: PodPlan, options: KubernetesOptions) -> int:
    return plan.limits.memory_bytes + _OVERHEAD + (_disk(plan) if options.memory_volume else 0)


def _seccomp(options: KubernetesOptions) -> Mapping[str, str]:
    if options.seccomp is None:
        return {"type": "RuntimeDefault"}
    return {"type": "Localhost", "localhostProfile": options.seccomp}


def _program(name: str) -> str:
    folder = files("turnout.sandbox.kubernetes.inside")
    return folder.joinpath(f"{name}.py").read_text("utf-8")
