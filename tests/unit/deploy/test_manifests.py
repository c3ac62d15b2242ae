"""The manifests in `deploy/` are what the driver relies on."""

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from kubernetes_asyncio.client import ApiClient
from tests.unit.deploy.made import DEPLOY, OPTIONS, contents

from turnout.sandbox.base import Limits
from turnout.sandbox.kubernetes.manifests.labels import EGRESS, OURS
from turnout.sandbox.kubernetes.manifests.pod import PodPlan, pod_spec
from turnout.sandbox.kubernetes.manifests.policy import SERVICE, deny_all, to_proxy
from turnout.sandbox.kubernetes.options import ProxyAddress
from turnout.sandbox.kubernetes.probe import FOR_CLAIMS, NEEDED

PLAN = PodPlan(Limits(), uid=1000, user_namespace=True)


def manifests() -> Iterator[dict[str, Any]]:
    """Yield every object of every file."""
    for path in sorted(DEPLOY.glob("*.yaml")):
        yield from yaml.safe_load_all(path.read_text())


def named(kind: str, name: str) -> dict[str, Any]:
    """Return the one object of a kind and a name."""
    (found,) = (m for m in manifests() if m["kind"] == kind and m["metadata"]["name"] == name)
    return found


@pytest.mark.parametrize(
    "manifest",
    [m for m in manifests() if ".x-k8s.io/" not in m["apiVersion"]],
    ids=lambda m: f"{m['kind']}-{m['metadata']['name']}",
)
async def test_a_manifest_has_no_field_that_its_kind_does_not_know(
    manifest: dict[str, Any],
) -> None:
    """Read and written by the models of Kubernetes 1.36, every manifest comes back whole."""
    group, _, version = manifest["apiVersion"].rpartition("/")
    prefix = {"rbac.authorization.k8s.io": "V1"}.get(group, version.capitalize())
    api = ApiClient()
    try:
        told = SimpleNamespace(data=json.dumps(manifest))
        read = api.deserialize(told, f"{prefix}{manifest['kind']}")
        assert api.sanitize_for_serialization(read) == manifest
    finally:
        await api.close()


def test_the_policies_are_those_that_the_driver_asks_for() -> None:
    """What is applied by hand and what the driver makes where it may are the same."""
    for made in (deny_all(), to_proxy(ProxyAddress())):
        shipped = named("NetworkPolicy", made["metadata"]["name"])
        assert {**shipped["metadata"], "namespace": None} == {**made["metadata"], "namespace": None}
        assert shipped["spec"] == made["spec"]


def test_the_role_allows_what_is_needed_and_no_more() -> None:
    """Every permission that `probe` asks about is granted; none is granted on anything else."""
    role = named("Role", "turnout-sandboxes")
    granted = {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    pools = ("extensions.agents.x-k8s.io", "sandboxwarmpools", "get")
    assert granted == {*NEEDED, *FOR_CLAIMS, pools}
    assert role["metadata"]["namespace"] == OPTIONS.namespace
    assert not [m for m in manifests() if m["kind"].startswith("ClusterRole")]


def test_the_namespace_of_sandboxes_is_held_to_the_strictest_standard() -> None:
    """A pod that is less than `restricted` is refused by the cluster itself."""
    labels = named("Namespace", OPTIONS.namespace)["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


def test_the_service_is_what_the_policies_choose() -> None:
    """Sandboxes reach the ports of pods that bear the service's label in its namespace."""
    job = named("Job", "turnout-run")
    pod = job["spec"]["template"]
    assert SERVICE.items() <= pod["metadata"]["labels"].items()
    assert job["metadata"]["namespace"] == ProxyAddress().namespace
    assert (
        pod["spec"]["serviceAccountName"] == named("ServiceAccount", "turnout")["metadata"]["name"]
    )
    (ingress,) = named("NetworkPolicy", "turnout-proxy")["spec"]["ingress"]
    (egress,) = named("NetworkPolicy", "turnout-to-proxy")["spec"]["egress"]
    assert ingress["ports"] == egress["ports"]
    assert ingress["from"][0]["podSelector"]["matchLabels"] == {EGRESS: "proxy"}


def test_warm_pods_are_what_the_driver_asks_for() -> None:
    """But for the deadline: a pod that waits to be claimed is not late."""
    template = named("SandboxTemplate", "turnout")["spec"]
    asked = pod_spec(PLAN, OPTIONS)
    del asked["activeDeadlineSeconds"]
    assert template["podTemplate"]["spec"] == asked
    assert template["podTemplate"]["metadata"]["labels"] == OURS
    assert template["networkPolicyManagement"] == "Unmanaged"


def test_what_is_made_from_the_code_is_made_anew() -> None:
    """`python -m tests.unit.deploy.made` was run after the last change."""
    for path, content in contents().items():
        assert path.read_bytes() == content, path.name
