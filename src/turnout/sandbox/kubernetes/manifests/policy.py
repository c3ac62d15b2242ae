"""The network policies of the namespace of sandboxes: nothing in, nothing out but to the proxy."""

from collections.abc import Mapping

from turnout.sandbox.kubernetes.manifests.labels import EGRESS, OURS
from turnout.sandbox.kubernetes.options import ProxyAddress

__all__ = ["DENY_ALL", "SERVICE", "TO_PROXY", "Manifest", "deny_all", "to_proxy"]

DENY_ALL = "turnout-deny-all"
TO_PROXY = "turnout-to-proxy"
SERVICE: Mapping[str, str] = {"app.kubernetes.io/name": "turnout"}
"""Labels of the service's own pods."""

Manifest = dict[str, object]


def deny_all() -> Manifest:
    """Return the policy that holds for every sandbox."""
    return _policy(DENY_ALL, dict(OURS), [])


def to_proxy(proxy: ProxyAddress) -> Manifest:
    """Return the policy that lets sandboxes with egress reach the service's proxy, and no more."""
    namespace = {"kubernetes.io/metadata.name": proxy.namespace}
    service = {
        "namespaceSelector": {"matchLabels": namespace},
        "podSelector": {"matchLabels": dict(SERVICE)},
    }
    ports = {"protocol": "TCP", "port": proxy.port, "endPort": proxy.port + proxy.ports - 1}
    rule = {"to": [service], "ports": [ports]}
    return _policy(TO_PROXY, {**OURS, EGRESS: "proxy"}, [rule])


def _policy(name: str, labels: dict[str, str], egress: list[Manifest]) -> Manifest:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/managed-by": "turnout"}},
        "spec": {
            "podSelector": {"matchLabels": labels},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [],
            "egress": egress,
        },
    }
