"""Finding out what a cluster allows, and trying the walls in a pod."""

from collections.abc import Awaitable, Callable, Mapping
from secrets import token_hex
from urllib.parse import urlsplit

from pydantic import BaseModel

from turnout.core.ids import RunId
from turnout.errors import SandboxError, SandboxUnavailableError
from turnout.sandbox.base import NO_EGRESS, Capabilities, Command, Limits
from turnout.sandbox.kubernetes.api.access import Access, Found, Version
from turnout.sandbox.kubernetes.api.claim import GROUP
from turnout.sandbox.kubernetes.api.cluster import Cluster, ClusterError
from turnout.sandbox.kubernetes.options import KubernetesOptions
from turnout.sandbox.kubernetes.sandbox import PodSandbox
from turnout.sandbox.kubernetes.start import Start, Wish

__all__ = ["NEEDED", "Probe"]

Fact = tuple[str, bool, str]

NEEDED: tuple[tuple[str, str, str], ...] = (
    *(("", "pods", verb) for verb in ("create", "get", "list", "watch", "patch", "delete")),
    *(("", "pods/exec", verb) for verb in ("create", "get")),
    ("networking.k8s.io", "networkpolicies", "get"),
)
"""API group, resource and verb of everything that is asked of the cluster."""

FOR_CLAIMS: tuple[tuple[str, str, str], ...] = (
    *(
        ("extensions.agents.x-k8s.io", "sandboxclaims", verb)
        for verb in ("create", "get", "list", "watch", "delete")
    ),
    ("agents.x-k8s.io", "sandboxes", "get"),
)
"""The same for warm pods."""

_LOOK = """
grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status
echo "Uid: $(id -u)"
touch /turnout-probe 2>/dev/null && echo 'Writable: /'
[ -e /var/run/secrets/kubernetes.io ] && echo 'Token: 1'
exit 0
"""
_CONNECT = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), 3).close()
except OSError:
    sys.exit(1)
"""
_EXPECTED: Mapping[str, str] = {
    "CapEff": "0000000000000000",
    "CapBnd": "0000000000000000",
    "NoNewPrivs": "1",
    "Seccomp": "2",
}
_TRIAL = Limits(memory_bytes=256 << 20, disk_bytes=64 << 20, cpus=0.5, lifetime_seconds=300)


class _Review(BaseModel):
    class Status(BaseModel):
        allowed: bool = False
        reason: str = ""

    status: Status = Status()


class Probe:
    """One look at a cluster."""

    def __init__(self, options: KubernetesOptions, access: Access, start: Start) -> None:
        self._options = options
        self._access = access
        self._start = start
        self._facts: list[Fact] = []

    async def __call__(self) -> Capabilities:
        """Return what holds; nothing is usable without a pod in which the walls held."""
        steps: tuple[Callable[[Cluster], Awaitable[Fact]], ...] = (
            self._permissions,
            self._runtime_class,
            self._policies,
            self._warm_pods,
        )
        try:
            cluster = await self._access.cluster()
            version = (await cluster.ask("GET", "/version")).read(Version)
        except (SandboxError, SandboxUnavailableError) as error:
            return self._unusable("API server", error)
        self._facts.append(("API server", True, version.git_version or "it answers"))
        self._facts += [await step(cluster) for step in steps]
        needed = [holds for name, holds, _ in self._facts if name != "warm pods"]
        if not all(needed):
            return Capabilities("kubernetes", False, "none", tuple(self._facts))
        return await self._try_walls()

    def _unusable(self, name: str, error: SandboxError | SandboxUnavailableError) -> Capabilities:
        self._facts.append((name, False, str(error).removesuffix(".")))
        return Capabilities("kubernetes", False, "none", tuple(self._facts))

    async def _permissions(self, cluster: Cluster) -> Fact:
        needed = NEEDED if self._options.warm_pool is None else (*NEEDED, *FOR_CLAIMS)
        missing = []
        for group, resource, verb in needed:
            if not await self._allowed(cluster, group, resource, verb):
                missing.append(f"{verb} {resource}")
        if missing:
            mend = "apply deploy/kubernetes/rbac.yaml"
            return ("permissions", False, f"not allowed: {', '.join(missing)}; {mend}")
        return ("permissions", True, f"in {self._options.namespace}")

    async def _allowed(self, cluster: Cluster, group: str, resource: str, verb: str) -> bool:
        kind, _, part = resource.partition("/")
        attributes = {"namespace": self._options.namespace, "verb": verb, "group": group}
        attributes |= {"resource": kind, "subresource": part}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        try:
            return (await cluster.ask("POST", path, body=body)).read(_Review).status.allowed
        except ClusterError:
            return False

    async def _runtime_class(self, cluster: Cluster) -> Fact:
        name = self._options.runtime_class
        if name is None:
            return ("runtime class", True, "that of the node")
        path = f"/apis/node.k8s.io/v1/runtimeclasses/{name}"
        answer = await cluster.ask("GET", path, accept=(403, 404))
        if answer.status == 404:
            return (
                "runtime class",
                False,
                f"there is no {name}: apply deploy/kubernetes/runtime-class.yaml",
            )
        return ("runtime class", True, name if answer.status != 403 else f"{name}, not looked up")

    async def _policies(self, _: Cluster) -> Fact:
        try:
            await self._access.found()
        except (SandboxError, SandboxUnavailableError) as error:
            return ("network policies", False, str(error).removesuffix("."))
        return ("network policies", True, "nothing in, nothing out but to the proxy")

    async def _warm_pods(self, cluster: Cluster) -> Fact:
        pool = self._options.warm_pool
        if (await cluster.ask("GET", f"/apis/{GROUP}", accept=(403, 404))).status != 200:
            why = f"agent-sandbox with {GROUP} is not installed"
            return ("warm pods", False, f"{why}: every pod is made when it is needed")
        if pool is None:
            return ("warm pods", False, "no pool is configured: set `warm_pool`")
        path = f"/apis/{GROUP}/namespaces/{self._options.namespace}/sandboxwarmpools/{pool}"
        if (await cluster.ask("GET", path, accept=(403, 404))).status == 404:
            return (
                "warm pods",
                False,
                f"there is no pool {pool}: apply deploy/kubernetes/warm-pool.yaml",
            )
        return ("warm pods", True, pool)

    async def _try_walls(self) -> Capabilities:
        """Start a pod and look at its walls from within."""
        wish = Wish(RunId(f"probe-{token_hex(6)}"), _TRIAL, NO_EGRESS, ())
        try:
            found = await self._access.found()
            sandbox = await self._start(found, wish)
        except (SandboxError, SandboxUnavailableError) as error:
            return self._unusable("pod", error)
        try:
            looked = await sandbox.run(Command(shell=_LOOK, cwd="/", timeout=20))
            lines = looked.stdout.decode(errors="replace").splitlines()
            reached = await self._reaches_cluster(found, sandbox)
        except SandboxError as error:
            return self._unusable("pod", error)
        finally:
            await sandbox.close()
        told = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
        self._facts += [_privileges(told, found.user_namespaces), _network(reached)]
        usable = all(holds for name, holds, _ in self._facts if name != "warm pods")
        return Capabilities("kubernetes", usable, sandbox.isolation, tuple(self._facts))

    async def _reaches_cluster(self, found: Found, sandbox: PodSandbox) -> bool:
        """Whether a connection to the API server can be made from within."""
        address = urlsplit(found.cluster.host)
        port = address.port or (443 if address.scheme == "https" else 80)
        argv = (self._options.python, "-ISE", "-c", _CONNECT, address.hostname or "", str(port))
        return (await sandbox.run(Command(argv, cwd="/", timeout=10))).ok


def _privileges(told: Mapping[str, str], user_namespace: bool) -> Fact:
    wrong = [
        f"{name} {told.get(name, '?')}"
        for name, value in _EXPECTED.items()
        if told.get(name) != value
    ]
    if told.get("Uid", "0") == "0":
        wrong.append("it runs as root")
    if "Writable" in told:
        wrong.append("its root folder can be written")
    if "Token" in told:
        wrong.append("it holds a token of the cluster")
    if wrong:
        return ("privileges", False, ", ".join(wrong))
    more = ", a user namespace of its own" if user_namespace else ""
    return ("privileges", True, f"no capabilities, read-only root, system call filter{more}")


def _network(reached: bool) -> Fact:
    if reached:
        why = "a pod reaches the API server: network policies are not enforced"
        return ("closed network", False, f"{why}; use a network plugin that enforces them")
    return ("closed network", True, "a pod does not reach the API server")
