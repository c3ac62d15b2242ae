"""The API server of the cluster on this machine."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from turnout.testing.kubernetes.faults import Faults, Refusal
from turnout.testing.kubernetes.kubelet import Kubelet
from turnout.testing.kubernetes.store import Store
from turnout.testing.kubernetes.streams import Streams
from turnout.testing.kubernetes.warm import WarmPods

__all__ = ["Asked", "FakeCluster"]

Thing = dict[str, Any]

_NAMESPACED = "/namespaces/"
_POD_VERBS = ["create", "delete", "get", "list", "patch", "watch"]
_DISCOVERY: Mapping[str, Thing] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [
            {"name": name, "singularName": one, "namespaced": True, "kind": kind, "verbs": verbs}
            for name, one, kind, verbs in (
                ("pods", "pod", "Pod", _POD_VERBS),
                ("pods/exec", "", "PodExecOptions", ["create", "get"]),
            )
        ],
    },
}
"""What clients ask before they ask for anything."""
_REASONS = {400: "BadRequest", 403: "Forbidden", 404: "NotFound", 409: "AlreadyExists"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that came."""

    verb: str
    path: str
    query: Mapping[str, str]
    body: Thing


class FakeCluster:
    """An API server on a port of the loopback, and a node behind it."""

    def __init__(self, folder: Path, *, version: tuple[str, str] = ("1", "36")) -> None:
        self.faults = Faults()
        self.store = Store()
        self.asked: list[Asked] = []
        """Every request, oldest first."""
        self.groups: set[str] = set()
        """API groups with version that are installed beside those of every cluster."""
        self.kubelet = Kubelet(self.store, self.faults, folder, self._reaches)
        self.warm = WarmPods(self.store, self.kubelet)
        self._version = version
        self._streams = Streams()
        self._runner: web.AppRunner | None = None
        self._port = 0

    async def __aenter__(self) -> Self:
        await self.serve()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.kubelet.stop_all()
        await self.stop()

    @property
    def url(self) -> str:
        """Address of the API server."""
        return f"http://127.0.0.1:{self._port}"

    async def serve(self) -> None:
        """Listen, on the same port as before."""
        app = web.Application(client_max_size=4 << 20)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop listening and break every connection off; pods go on."""
        if self._runner is not None:
            self._streams.tear()
            await self._runner.cleanup()

    def tear_streams(self) -> None:
        """Break every stream into a pod off."""
        self._streams.tear()

    def asked_for(self, verb: str, ending: str) -> list[Asked]:
        """Return the requests with a verb and a path that ends so."""
        return [one for one in self.asked if one.verb == verb and one.path.endswith(ending)]

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.can_read_body else {}
        self.asked.append(Asked(request.method, request.path, dict(request.query), body))
        refusal = self.faults.take(request.method, request.path)
        if refusal is not None and not refusal.done:
            return _refused(refusal)
        answer = await self._route(request, body)
        return answer if refusal is None else _refused(refusal)

    async def _route(self, request: web.Request, body: Thing) -> web.StreamResponse:
        path = request.path
        if path == "/version":
            major, minor = self._version
            version = {"major": major, "minor": minor, "gitVersion": f"v{major}.{minor}.0"}
            return web.json_response(version)
        if path in _DISCOVERY:
            return web.json_response(_DISCOVERY[path])
        if path.endswith("/selfsubjectaccessreviews"):
            return web.json_response(self._review(body), status=201)
        if path.endswith("/exec"):
            return await self._execute(request)
        if path.startswith("/apis/") and path.count("/") == 3:
            known = path.removeprefix("/apis/") in self.groups
            return web.json_response({"resources": []}) if known else _missing(path)
        collection, name = _split(path)
        if name:
            return await self._one(request.method, collection, name, body)
        if request.method == "POST":
            return await self._create(collection, body)
        if request.query.get("watch") == "true":
            return await self._watch(request, collection)
        labels = _pairs(request.query.get("labelSelector", ""))
        return web.json_response({"items": self.store.list(collection, labels)})

    def _review(self, body: Thing) -> Thing:
        wanted = body["spec"]["resourceAttributes"]
        resource = "/".join(filter(None, (wanted["resource"], wanted["subresource"])))
        allowed = (wanted["verb"], resource) not in self.faults.forbidden
        return {**body, "status": {"allowed": allowed}}

    async def _create(self, collection: str, body: Thing) -> web.Response:
        name = body["metadata"]["name"]
        if ("create", collection.rpartition("/")[2]) in self.faults.forbidden:
            return _status(403, f"{collection} is forbidden: cannot create")
        if self.store.get(collection, name) is not None:
            return _status(409, f'"{name}" already exists')
        initial = {"status": {"phase": "Pending"}} if collection.endswith("/pods") else {}
        if _NAMESPACED in collection:
            body["metadata"]["namespace"] = collection.split("/")[-2]
        made = await self.store.add(collection, body | initial)
        if collection.endswith("/pods"):
            self.kubelet.start(collection, made)
        elif collection.endswith("/sandboxclaims"):
            await self.warm.claim(collection, made)
        return web.json_response(made, status=201)

    async def _one(self, verb: str, collection: str, name: str, body: Thing) -> web.Response:
        found = self.store.get(collection, name)
        if found is not None and verb == "PATCH":
            found = await self.store.merge(collection, name, body)
        elif found is not None and verb == "DELETE":
            if collection.endswith("/pods"):
                await self.kubelet.stop(collection, name)
            elif collection.endswith("/sandboxclaims"):
                await self.warm.give_up(collection, name)
            found = await self.store.remove(collection, name)
        return _missing(f"{collection}/{name}") if found is None else web.json_response(found)

    async def _watch(self, request: web.Request, collection: str) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        name = _pairs(request.query.get("fieldSelector", "")).get("metadata.name")
        since = int(request.query.get("resourceVersion") or 0)
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(float(request.query.get("timeoutSeconds", "30"))):
                async for change in self.store.watch(collection, since):
                    if name in (None, change.thing["metadata"]["name"]):
                        event = {"type": change.kind, "object": change.thing}
                        await response.write(json.dumps(event).encode() + b"\n")
        return response

    async def _execute(self, request: web.Request) -> web.StreamResponse:
        if ("get", "pods/exec") in self.faults.forbidden:
            return _status(403, "pods/exec is forbidden")
        pods, name = _split(request.path.removesuffix("/exec"))
        container = request.query["container"]
        command = request.query.getall("command")
        process = await self.kubelet.execute(pods, name, container, command)
        if process is None:
            return _status(500, f"container {container} is not running")
        return await self._streams.serve(request, process, self.faults.cut_after_bytes)

    def _reaches(self, pod: Thing) -> bool:
        """Whether network policies let a pod out: none that chooses it, or one with a way out."""
        namespace = pod["metadata"]["namespace"]
        path = f"/apis/networking.k8s.io/v1{_NAMESPACED}{namespace}/networkpolicies"
        labels = pod["metadata"].get("labels", {}).items()
        chosen = [
            policy["spec"]
            for policy in self.store.list(path, {})
            if policy["spec"]["podSelector"].get("matchLabels", {}).items() <= labels
            and "Egress" in policy["spec"]["policyTypes"]
        ]
        return self.faults.unenforced or not chosen or any(spec["egress"] for spec in chosen)


def _split(path: str) -> tuple[str, str]:
    """Return the collection that a path names, and the object in it, if any."""
    parts = path.strip("/").split("/")
    start = 2 if parts[0] == "api" else 3
    length = start + 3 if parts[start : start + 1] == ["namespaces"] else start + 1
    return "/" + "/".join(parts[:length]), "/".join(parts[length:])


def _pairs(selector: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in selector.split(",") if part)


def _missing(what: str) -> web.Response:
    return _status(404, f"{what} not found")


def _status(code: int, message: str, *, reason: str = "") -> web.Response:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
    body |= {"message": message, "reason": reason or _REASONS.get(code, "InternalError")}
    return web.json_response(body, status=code)


def _refused(refusal: Refusal) -> web.Response:
    response = _status(refusal.status, refusal.message, reason=refusal.reason)
    response.headers.update(refusal.headers)
    return response
