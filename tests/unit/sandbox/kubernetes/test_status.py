"""Reading what a cluster says of a pod; the shapes are those of the API."""

from typing import Any

import pytest

from turnout.errors import SandboxUnavailableError
from turnout.sandbox.kubernetes.manifests.status import (
    Pod,
    ended,
    is_running,
    why_ended,
    why_waiting,
)

RUNS = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
OUT_OF_MEMORY = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}


def pod(phase: str = "Running", **status: Any) -> Pod:
    """Return a pod with a status."""
    return Pod.model_validate({"metadata": {"name": "p"}, "status": {"phase": phase, **status}})


def of(sandbox: dict[str, Any], relay: dict[str, Any] = RUNS) -> list[dict[str, Any]]:
    """Return the states of both containers."""
    return [{"name": "sandbox", "state": sandbox}, {"name": "relay", "state": relay}]


def test_a_pod_runs_when_all_of_it_does() -> None:
    """One container that is still made, or none at all, is not enough."""
    assert is_running(pod(containerStatuses=of(RUNS)))
    assert not is_running(pod("Pending", containerStatuses=of({"waiting": {}})))
    assert not is_running(pod("Pending"))


@pytest.mark.parametrize(
    "reason",
    ["ErrImagePull", "ImagePullBackOff", "CreateContainerConfigError", "CreateContainerError"],
)
def test_a_start_that_cannot_come_is_not_waited_for(reason: str) -> None:
    """The error says why and what helps."""
    waiting = {"waiting": {"reason": reason, "message": "back-off"}}
    with pytest.raises(SandboxUnavailableError, match=f"{reason}: back-off") as raised:
        is_running(pod("Pending", containerStatuses=of(waiting)))
    assert raised.value.mend


def test_an_init_container_that_cannot_start_is_not_waited_for() -> None:
    """Its image is the same, and comes first."""
    waiting = [{"name": "folders", "state": {"waiting": {"reason": "ErrImagePull"}}}]
    with pytest.raises(SandboxUnavailableError, match="ErrImagePull"):
        is_running(pod("Pending", initContainerStatuses=waiting))


def test_the_sandbox_is_gone_with_its_container() -> None:
    """The relay may live on for a moment."""
    assert ended(pod(containerStatuses=of(OUT_OF_MEMORY)))
    assert not ended(pod(containerStatuses=of(RUNS, OUT_OF_MEMORY)))
    assert ended(pod("Failed"))


def test_the_reason_of_an_end_is_told() -> None:
    """That of the pod before that of its container, an exit status where there is neither."""
    evicted = pod("Failed", reason="Evicted", message="The node was low on resource: disk.")
    assert why_ended(evicted) == "Evicted: The node was low on resource: disk"
    assert why_ended(pod(containerStatuses=of(OUT_OF_MEMORY))) == "OOMKilled"
    completed = {"terminated": {"reason": "Completed", "exitCode": 0}}
    assert why_ended(pod(containerStatuses=of(completed))) == "exit status 0"
    assert why_ended(pod()) == ""


def test_why_a_pod_waits_is_told() -> None:
    """What the scheduler says comes first."""
    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    waits = pod("Pending", conditions=[{**told, "message": "0/3 nodes are available"}])
    assert why_waiting(waits) == "Unschedulable: 0/3 nodes are available"
    assert why_waiting(pod("Pending")) == "it is pending"


def test_a_long_message_is_cut() -> None:
    """What a cluster says goes into an error, not a page of it."""
    assert len(why_ended(pod("Failed", reason="x", message="y" * 5000))) <= 400
