"""What of `deploy/` is made from the code: `python -m tests.unit.deploy.made` writes it."""

from pathlib import Path

import yaml

from turnout.sandbox.base import Limits
from turnout.sandbox.container.engines.profile import profile
from turnout.sandbox.kubernetes.api.claim import GROUP
from turnout.sandbox.kubernetes.manifests.labels import OURS
from turnout.sandbox.kubernetes.manifests.pod import PodPlan, pod_spec
from turnout.sandbox.kubernetes.options import KubernetesOptions

DEPLOY = Path(__file__).resolve().parents[3] / "deploy" / "kubernetes"
OPTIONS = KubernetesOptions("turnout-sandbox")
_HEAD = """\
# Sandboxes that run before they are needed. The controller must not add a policy of its own: those
# of network.yaml hold, chosen by the labels below. Without `hostUsers: false` (servers before 1.33,
# some runtimes) all pods of a node share the limit of processes of uid 1000.
"""


def warm_pool() -> str:
    """Return a template of what the driver asks for, and a pool of it."""
    spec = pod_spec(PodPlan(Limits(), uid=1000, user_namespace=True), OPTIONS)
    # Waiting to be claimed does not count: the claim says when its pod is to end.
    del spec["activeDeadlineSeconds"]
    template = {
        "apiVersion": GROUP,
        "kind": "SandboxTemplate",
        "metadata": {"name": "turnout", "namespace": OPTIONS.namespace},
        "spec": {
            "networkPolicyManagement": "Unmanaged",
            "podTemplate": {"metadata": {"labels": dict(OURS)}, "spec": spec},
        },
    }
    pool = {
        "apiVersion": GROUP,
        "kind": "SandboxWarmPool",
        "metadata": {"name": "turnout", "namespace": OPTIONS.namespace},
        "spec": {"replicas": 4, "sandboxTemplateRef": {"name": "turnout"}},
    }
    return _HEAD + yaml.safe_dump_all([template, pool], sort_keys=False)


def contents() -> dict[Path, bytes]:
    """Return the files that are made, and what is in them."""
    profiles = {
        DEPLOY / "seccomp" / f"{machine}.json": profile(machine) + b"\n"
        for machine in ("aarch64", "x86_64")
    }
    return {DEPLOY / "warm-pool.yaml": warm_pool().encode(), **profiles}


if __name__ == "__main__":
    for path, content in contents().items():
        path.write_bytes(content)
