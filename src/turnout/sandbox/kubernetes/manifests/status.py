"""What the cluster tells of a pod, as far as we read it."""

from typing import Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from turnout.errors import SandboxUnavailableError
from turnout.sandbox.kubernetes.manifests.pod import AGENT

__all__ = ["Meta", "Pod", "ended", "is_running", "why_ended", "why_waiting"]

_HOPELESS = {
    "ErrImagePull": "Check the image's name and the credentials of its registry.",
    "ImagePullBackOff": "Check the image's name and the credentials of its registry.",
    "InvalidImageName": "Check the image's name.",
    "ErrImageNeverPull": "Put the image on every node, or let `pull_policy` fetch it.",
    "CreateContainerConfigError": "Check the uid and what the pod refers to.",
    "CreateContainerError": "Put the filter on every node, as deploy/kubernetes/README.md says.",
    "RunContainerError": "Check that the image has Python at the path of `python`.",
}


class _Told(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, frozen=True)


class Meta(_Told):
    """What every object has."""

    name: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class _Waiting(_Told):
    reason: str = ""
    message: str = ""


class _Terminated(_Told):
    reason: str = ""
    message: str = ""
    exit_code: int = 0


class _State(_Told):
    waiting: _Waiting | None = None
    running: dict[str, object] | None = None
    terminated: _Terminated | None = None


class _Container(_Told):
    name: str = ""
    state: _State = _State()


class _Condition(_Told):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _Status(_Told):
    phase: Literal["", "Pending", "Running", "Succeeded", "Failed", "Unknown"] = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[_Condition, ...] = ()
    init_container_statuses: tuple[_Container, ...] = ()
    container_statuses: tuple[_Container, ...] = ()


class Pod(_Told):
    """One pod."""

    metadata: Meta = Meta()
    status: _Status = _Status()


def _agent_end(pod: Pod) -> _Terminated | None:
    return next(
        (one.state.terminated for one in pod.status.container_statuses if one.name == AGENT), None
    )


def ended(pod: Pod) -> bool:
    """Whether the sandbox in it is gone, whatever else of the pod still runs."""
    return pod.status.phase in ("Succeeded", "Failed") or _agent_end(pod) is not None


def is_running(pod: Pod) -> bool:
    """Whether every container runs; `SandboxUnavailableError` where that will never be."""
    if ended(pod):
        raise SandboxUnavailableError(
            f"The pod of the sandbox ended before it began: {why_ended(pod)}.",
            mend="Look at it with: kubectl describe pod.",
        )
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    for one in statuses:
        waiting = one.state.waiting
        if waiting is not None and waiting.reason in _HOPELESS:
            raise SandboxUnavailableError(
                f"The pod of the sandbox cannot start: {_said(waiting.reason, waiting.message)}.",
                mend=_HOPELESS[waiting.reason],
            )
    containers = pod.status.container_statuses
    return bool(containers) and all(one.state.running is not None for one in containers)


def why_waiting(pod: Pod) -> str:
    """Return what the cluster says of a pod that does not run yet."""
    for one in pod.status.conditions:
        if one.type == "PodScheduled" and one.status == "False":
            return _said(one.reason, one.message)
    for container in pod.status.container_statuses:
        waiting = container.state.waiting
        if waiting is not None and waiting.reason:
            return _said(waiting.reason, waiting.message)
    return f"it is {pod.status.phase.lower() or 'unknown to the cluster'}"


def why_ended(pod: Pod) -> str:
    """Return why a pod's sandbox is gone; empty where the cluster does not say."""
    if pod.status.reason:
        return _said(pod.status.reason, pod.status.message)
    end = _agent_end(pod)
    if end is None:
        return ""
    code = f"exit status {end.exit_code}"
    return _said(end.reason if end.reason != "Completed" else code, end.message)


def _said(reason: str, message: str) -> str:
    text = f"{reason}: {message}" if message and reason else reason or message
    return text[:400].strip().removesuffix(".")
