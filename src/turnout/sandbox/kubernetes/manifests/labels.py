"""The names under which objects of ours are found in a cluster."""

import hashlib
import re
from collections.abc import Mapping

from turnout.core.ids import RunId

__all__ = [
    "CLAIM",
    "EGRESS",
    "LEASE",
    "OURS",
    "OWNER",
    "RUN",
    "SELECTOR",
    "labels_of",
    "object_name",
    "run_of",
]

OURS: Mapping[str, str] = {
    "app.kubernetes.io/name": "turnout-sandbox",
    "app.kubernetes.io/managed-by": "turnout",
}
"""Labels of every sandbox; the network policies choose by them."""

SELECTOR = ",".join(f"{name}={value}" for name, value in OURS.items())

RUN = "turnout/run"
"""Annotation: the run, as we name it."""

OWNER = "turnout/owner"
"""Label: the service that made it."""

CLAIM = "turnout/claim"
"""Label of a pod that was claimed: the claim's name."""

EGRESS = "turnout/egress"
"""Label whose value `proxy` lets a sandbox reach the proxy."""

LEASE = "turnout/lease"
"""Annotation: until when its service says that it lives, in seconds since 1970."""

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,45}[a-z0-9])?")


def object_name(run_id: RunId, token: str) -> str:
    """Return the name of a run's pod; `token` tells it from others of the run."""
    part = run_id if _NAME.fullmatch(run_id) else hashlib.sha256(run_id.encode()).hexdigest()[:16]
    return f"turnout-{part}-{token}"


def labels_of(owner: str, *, reaches_proxy: bool) -> dict[str, str]:
    """Return the labels of a sandbox."""
    return {**OURS, OWNER: owner, **({EGRESS: "proxy"} if reaches_proxy else {})}


def run_of(annotations: Mapping[str, str]) -> RunId:
    """Return the run that an object belongs to; empty where it does not say."""
    return RunId(annotations.get(RUN, ""))
