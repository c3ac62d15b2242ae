"""The pod that a sandbox asks for."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes_asyncio.client import ApiClient

from turnout.sandbox.base import REPO, WORKSPACE, Limits
from turnout.sandbox.kubernetes.manifests.pod import (
    AGENT,
    RELAY,
    PodPlan,
    pod_spec,
    relay_command,
)
from turnout.sandbox.kubernetes.options import KubernetesOptions

OPTIONS = KubernetesOptions("registry.example/sandbox:1")
PLAN = PodPlan(
    Limits(memory_bytes=1 << 30, cpus=1.5, disk_bytes=1 << 29, lifetime_seconds=3600),
    uid=23_456,
    user_namespace=False,
    folders=("/wheels", "/base.more/0"),
    base_bytes=1 << 20,
    patience=120,
)
FULL = KubernetesOptions(
    "registry.example/sandbox:1",
    runtime_class="gvisor",
    seccomp=None,
    pull_secrets=("registry",),
    node_selector=(("pool", "sandboxes"),),
    memory_volume=True,
)


def containers(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Return every container of a pod."""
    return [*spec["initContainers"], *spec["containers"]]


def named(spec: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a container by its name."""
    (found,) = (one for one in containers(spec) if one["name"] == name)
    return found


@pytest.mark.parametrize("options", [OPTIONS, FULL])
@pytest.mark.parametrize("user_namespace", [False, True])
async def test_the_pod_has_no_field_that_pods_do_not_know(
    options: KubernetesOptions, user_namespace: bool
) -> None:
    """Read and written by the models of Kubernetes 1.36, the specification comes back whole."""
    plan = PodPlan(Limits(), uid=1000, user_namespace=user_namespace)
    spec = json.loads(json.dumps(pod_spec(plan, options)))
    api = ApiClient()
    try:
        read = api.deserialize(SimpleNamespace(data=json.dumps(spec)), "V1PodSpec")
        assert api.sanitize_for_serialization(read) == spec
    finally:
        await api.close()


@pytest.mark.parametrize("options", [OPTIONS, FULL])
def test_the_pod_meets_the_restricted_standard(options: KubernetesOptions) -> None:
    """The Pod Security Standard `restricted`, rule by rule."""
    spec = pod_spec(PLAN, options)
    assert not any(spec[name] for name in ("hostNetwork", "hostPID", "hostIPC"))
    assert all(set(volume) <= {"name", "emptyDir"} for volume in spec["volumes"])
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["runAsUser"] >= 1000
    assert spec["securityContext"]["seccompProfile"]["type"] in ("RuntimeDefault", "Localhost")
    for container in containers(spec):
        security = container["securityContext"]
        assert security["allowPrivilegeEscalation"] is False
        assert security["privileged"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert "ports" not in container


def test_the_pod_holds_nothing_of_the_cluster() -> None:
    """No token, no names of services, no root folder to write, no name server, one life."""
    spec = pod_spec(PLAN, OPTIONS)
    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False
    assert spec["shareProcessNamespace"] is False
    assert spec["dnsPolicy"] == "None"
    assert spec["restartPolicy"] == "Never"
    assert spec["terminationGracePeriodSeconds"] == 0
    assert all(c["securityContext"]["readOnlyRootFilesystem"] for c in containers(spec))


def test_every_container_is_limited() -> None:
    """In memory, processor and disk; the pod as a whole in time."""
    spec = pod_spec(PLAN, OPTIONS)
    for container in containers(spec):
        assert {"cpu", "memory", "ephemeral-storage"} <= container["resources"]["limits"].keys()
    limits = named(spec, AGENT)["resources"]["limits"]
    assert limits["cpu"] == "1500m"
    assert int(limits["memory"]) > PLAN.limits.memory_bytes
    assert int(limits["ephemeral-storage"]) > PLAN.limits.disk_bytes + PLAN.base_bytes
    assert spec["activeDeadlineSeconds"] == 3720


def test_one_sized_volume_holds_all_that_is_written() -> None:
    """The workspace under both its names, the environment and temporary files share one limit."""
    spec = pod_spec(PLAN, OPTIONS)
    (volume,) = spec["volumes"]
    assert int(volume["emptyDir"]["sizeLimit"]) == PLAN.limits.disk_bytes + PLAN.base_bytes
    mounts = {m["mountPath"]: m.get("subPath") for m in named(spec, AGENT)["volumeMounts"]}
    assert mounts[REPO] == mounts[WORKSPACE]
    assert {"/tmp", "/venv", "/base.git", "/wheels", "/base.more/0", "/run/turnout"} <= set(mounts)


def test_folders_are_made_before_they_are_mounted() -> None:
    """By the run's own uid: one that the kubelet made would belong to root."""
    spec = pod_spec(PLAN, OPTIONS)
    made = {path.removeprefix("/volume/") for path in named(spec, "folders")["command"][2:]}
    assert {mount["subPath"] for mount in named(spec, AGENT)["volumeMounts"]} == made


def test_the_relay_shares_one_folder_with_the_sandbox() -> None:
    """Nothing that a run writes is in its reach, and its command names no part of a run."""
    relay = named(pod_spec(PLAN, OPTIONS), RELAY)
    assert [mount["mountPath"] for mount in relay["volumeMounts"]] == ["/run/turnout"]
    assert sum(map(len, relay_command(OPTIONS))) < 500


def test_memory_that_holds_files_is_counted() -> None:
    """A workspace in memory adds its size to the container's limit."""
    plain = int(named(pod_spec(PLAN, OPTIONS), AGENT)["resources"]["limits"]["memory"])
    spec = pod_spec(PLAN, FULL)
    assert spec["volumes"][0]["emptyDir"]["medium"] == "Memory"
    grown = int(named(spec, AGENT)["resources"]["limits"]["memory"])
    assert grown - plain == PLAN.limits.disk_bytes + PLAN.base_bytes


def test_what_the_operator_chooses_is_asked_for() -> None:
    """Runtime class, filter, nodes, secrets of the registry and the user namespace."""
    spec = pod_spec(PodPlan(Limits(), uid=1000, user_namespace=True), FULL)
    assert spec["runtimeClassName"] == "gvisor"
    assert spec["hostUsers"] is False
    assert spec["nodeSelector"] == {"pool": "sandboxes"}
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    profile = pod_spec(PLAN, OPTIONS)["securityContext"]["seccompProfile"]
    assert profile == {"type": "Localhost", "localhostProfile": "turnout/sandbox.json"}
