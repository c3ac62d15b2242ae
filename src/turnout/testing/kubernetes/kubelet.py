"""Running the pods that were asked for."""

import asyncio
import os
import shutil
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from turnout.errors import SandboxUnavailableError
from turnout.testing.kubernetes.faults import Faults
from turnout.testing.kubernetes.store import Store
from turnout.testing.rooms.room import Room, RoomPlan

__all__ = ["Kubelet"]

Thing = dict[str, Any]

_NODE_UID = 54_321
"""Owns the volumes, as root of the node does in a cluster: no uid of a container."""
_WAITING: Mapping[str, tuple[str, str]] = {
    "no_image": ("ErrImagePull", "failed to resolve reference: not found"),
    "no_profile": ("CreateContainerError", "cannot load seccomp profile: no such file"),
}


@dataclass(slots=True)
class _Running:
    """A pod on this node."""

    task: asyncio.Task[None]
    folder: Path
    rooms: dict[str, Room] = field(default_factory=dict)
    verdict: Thing = field(default_factory=dict)
    """What its status says at its end, where that is not what its containers' ends say."""
    killed: set[str] = field(default_factory=set)
    """Containers that ran out of memory."""


class Kubelet:
    """The one node of a cluster."""

    def __init__(
        self, store: Store, faults: Faults, folder: Path, reaches: Callable[[Thing], bool]
    ) -> None:
        """`reaches` says of a pod whether it is let out of its own network."""
        self._store = store
        self._faults = faults
        self._folder = folder
        self._reaches = reaches
        self._running: dict[tuple[str, str], _Running] = {}

    def start(self, pods: str, pod: Thing) -> None:
        """Begin to run a pod of the collection `pods`."""
        name = pod["metadata"]["name"]
        folder = self._folder / pod["metadata"]["uid"]
        task = asyncio.create_task(self._run(pods, name, pod))
        self._running[pods, name] = _Running(task, folder)

    async def stop(self, pods: str, name: str) -> None:
        """End a pod; nothing of it is left."""
        running = self._running.pop((pods, name), None)
        if running is None:
            return
        running.task.cancel()
        for room in list(running.rooms.values()):
            await room.close()
        await asyncio.wait([running.task])
        shutil.rmtree(running.folder, ignore_errors=True)

    async def stop_all(self) -> None:
        """End every pod."""
        for pods, name in list(self._running):
            await self.stop(pods, name)

    async def fail(self, pods: str, name: str, reason: str, message: str) -> None:
        """End what runs in a pod as an eviction or a deadline does."""
        running = self._running[pods, name]
        running.verdict = {"phase": "Failed", "reason": reason, "message": message}
        await self._tell(pods, name, running.verdict)
        for room in running.rooms.values():
            await room.close()

    async def starve(self, pods: str, name: str, container: str) -> None:
        """End a container for want of memory."""
        running = self._running[pods, name]
        running.killed.add(container)
        await running.rooms[container].close()

    async def execute(
        self, pods: str, name: str, container: str, command: Sequence[str]
    ) -> Process | None:
        """Start a process in a container; None where that does not run."""
        running = self._running.get((pods, name))
        room = running.rooms.get(container) if running is not None else None
        return None if room is None else await room.execute(command)

    async def _run(self, pods: str, name: str, pod: Thing) -> None:
        kind = self._faults.start
        if kind == "unschedulable":
            told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
            told["message"] = "0/1 nodes are available: 1 Insufficient memory"
            await self._tell(pods, name, {"phase": "Pending", "conditions": [told]})
        elif kind in _WAITING:
            reason, message = _WAITING[kind]
            state = {"waiting": {"reason": reason, "message": message}}
            statuses = [{"name": c["name"], "state": state} for c in pod["spec"]["containers"]]
            await self._tell(pods, name, {"phase": "Pending", "containerStatuses": statuses})
        else:
            await self._run_containers(pods, name, pod)

    async def _run_containers(self, pods: str, name: str, pod: Thing) -> None:
        running = self._running[pods, name]
        spec = pod["spec"]
        self._make_volumes(running.folder, spec)
        try:
            for container in spec.get("initContainers", []):
                code = await self._to_its_end(pod, container, running)
                if code:
                    await self._tell(pods, name, {"phase": "Failed", "reason": "InitError"})
                    return
            for container in spec["containers"]:
                plan = self._plan(pod, container, running.folder)
                running.rooms[container["name"]] = await Room.open(plan)
        except SandboxUnavailableError as error:
            failed = {"phase": "Failed", "reason": "NodeError", "message": error.message}
            await self._tell(pods, name, failed)
            return
        await self._tell(pods, name, self._status(running, {}))
        await self._follow(pods, name, spec, running)

    async def _to_its_end(self, pod: Thing, container: Thing, running: _Running) -> int:
        room = await Room.open(self._plan(pod, container, running.folder))
        running.rooms[container["name"]] = room
        try:
            return await room.wait()
        finally:
            del running.rooms[container["name"]]

    async def _follow(self, pods: str, name: str, spec: Thing, running: _Running) -> None:
        """Report each end; the deadline ends all."""
        loop = asyncio.get_running_loop()
        late = {"reason": "DeadlineExceeded", "message": "the pod was active too long"}
        deadline = loop.call_later(
            spec.get("activeDeadlineSeconds", 1e6),
            lambda: loop.create_task(self.fail(pods, name, late["reason"], late["message"])),
        )
        ends: dict[str, int] = {}
        waits = {
            asyncio.create_task(room.wait(), name=container): container
            for container, room in running.rooms.items()
        }
        pending = set(waits)
        try:
            while pending:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                ends |= {waits[task]: task.result() for task in done}
                await self._tell(pods, name, self._status(running, ends))
        finally:
            deadline.cancel()
            for task in pending:
                task.cancel()

    def _status(self, running: _Running, ends: Mapping[str, int]) -> Thing:
        if running.verdict:
            return running.verdict
        statuses = []
        for name in running.rooms:
            state: Thing = {"running": {}}
            if name in ends:
                killed = name in running.killed
                reason = "OOMKilled" if killed else "Error" if ends[name] else "Completed"
                code = 137 if killed else ends[name]
                state = {"terminated": {"reason": reason, "exitCode": code}}
            statuses.append({"name": name, "state": state})
        phase = "Running"
        if len(ends) == len(running.rooms):
            phase = "Failed" if any(ends.values()) else "Succeeded"
        return {"phase": phase, "containerStatuses": statuses}

    async def _tell(self, pods: str, name: str, status: Thing) -> None:
        await self._store.merge(pods, name, {"status": status})

    def _make_volumes(self, folder: Path, spec: Thing) -> None:
        for volume in spec.get("volumes", []):
            _make_folder(folder / volume["name"], 0o777)

    def _plan(self, pod: Thing, container: Thing, folder: Path) -> RoomPlan:
        """Read a container as a kubelet does; what it does not ask for it does not get."""
        spec = pod["spec"]
        security = container.get("securityContext", {})
        folders = {}
        for mount in container.get("volumeMounts", []):
            source = folder / mount["name"]
            if "subPath" in mount:
                source /= mount["subPath"]
                _make_folder(source, 0o755)
            folders[mount["mountPath"]] = source
        command = ["/bin/false"] if self._faults.start == "ends" else container["command"]
        return RoomPlan(
            command=tuple(command),
            uid=spec["securityContext"]["runAsUser"],
            folders=folders,
            variables={
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                **{entry["name"]: entry["value"] for entry in container.get("env", [])},
            },
            workdir=container.get("workingDir", "/"),
            network=self._reaches(pod),
            filtered="seccompProfile" in spec["securityContext"],
            read_only=bool(security.get("readOnlyRootFilesystem")),
            hostname=spec.get("hostname", "pod"),
        )


def _make_folder(path: Path, mode: int) -> None:
    """Make a folder that belongs to the node, unless it is there."""
    with suppress(FileExistsError):
        path.mkdir(parents=True)
        path.chmod(mode)
        if os.geteuid() == 0:
            os.chown(path, _NODE_UID, _NODE_UID)
