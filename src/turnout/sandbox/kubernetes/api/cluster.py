"""Requests to the API server of a cluster, repeated where that can help."""

import asyncio
import itertools
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypeVar

from aiohttp import ClientError, ClientResponse, ClientWebSocketResponse, WSServerHandshakeError
from kubernetes_asyncio.client import ApiClient, Configuration
from kubernetes_asyncio.config import (
    ConfigException,
    load_incluster_config,
    load_kube_config,
)
from kubernetes_asyncio.stream import WsApiClient
from pydantic import BaseModel, ValidationError

from turnout.errors import SandboxError, SandboxUnavailableError
from turnout.sandbox.kubernetes.options import KubernetesOptions

__all__ = ["Answer", "Cluster", "ClusterError", "configuration_of"]

_ATTEMPTS = 5
_SECONDS = 30.0
_FIRST_DELAY = 0.2
_LONGEST_DELAY = 10.0
_HEARTBEAT = 60.0
"""Seconds between pings; a server that is busy with input may be slow to answer one."""
_WATCHED_SECONDS = 0.5
"""Between looks where the server does not watch."""
_PASSING = (0, 429, 500, 502, 503, 504)
_MENDS = {
    401: "Check the credentials of the cluster.",
    403: "Give the service's account what deploy/kubernetes/rbac.yaml lists.",
    404: "Run `kubectl apply -f deploy/kubernetes`.",
}

Verb = Literal["GET", "POST", "PATCH", "DELETE"]
Told = TypeVar("Told", bound=BaseModel)


class ClusterError(SandboxUnavailableError):
    """The API server refused a request, or could not be reached."""

    def __init__(self, message: str, *, status: int, mend: str = "") -> None:
        super().__init__(message, mend=mend)
        self.status = status
        """HTTP status; 0 where there was no answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API server answered."""

    status: int
    """HTTP status; 0 where there was none."""
    body: bytes
    """As it came; without an answer, why there is none."""
    retry_after: float = 0.0
    """Seconds after which it may be asked again; 0 where it does not say."""

    def read(self, model: type[Told]) -> Told:
        """Return the object in it."""
        try:
            return model.model_validate_json(self.body)
        except ValidationError as error:
            raise SandboxError("An answer of the cluster cannot be read.") from error


class _Complaint(BaseModel):
    reason: str = ""
    message: str = ""


async def configuration_of(options: KubernetesOptions) -> Configuration:
    """Return how the cluster is reached; `SandboxUnavailableError` where nothing says."""
    found = Configuration()
    try:
        if options.kubeconfig is None:
            load_incluster_config(client_configuration=found)
        else:
            await load_kube_config(
                config_file=str(options.kubeconfig),
                context=options.context,
                client_configuration=found,
            )
    except ConfigException as error:
        raise SandboxUnavailableError(
            f"No cluster is configured: {str(error).removesuffix('.')}.",
            mend="Run inside a cluster, or name a kubeconfig.",
        ) from None
    return found


class Cluster:
    """One API server; closed by whoever made it."""

    def __init__(self, configuration: Configuration, *, first_delay: float = _FIRST_DELAY) -> None:
        self._api = ApiClient(configuration)
        self._streams = WsApiClient(configuration, heartbeat=_HEARTBEAT)
        self._first_delay = first_delay
        self.host: str = configuration.host
        """URL of the API server."""

    async def close(self) -> None:
        """Close every connection."""
        await self._api.close()
        await self._streams.close()

    async def ask(
        self,
        verb: Verb,
        path: str,
        *,
        body: Mapping[str, object] | None = None,
        query: Mapping[str, str] | None = None,
        accept: Sequence[int] = (),
    ) -> Answer:
        """Send a request until it is answered for good; `ClusterError` where it is refused.

        Statuses of `accept` are answers too. A request that was lost on the way may have been
        done: what is made has a name of its own, and 409 then means that it is there.
        """
        lost = False
        for attempt in itertools.count(1):
            answer = await self._try(verb, path, body, query)
            if 200 <= answer.status < 300 or answer.status in accept:
                return answer
            if answer.status == 409 and lost and verb == "POST":
                return answer
            if answer.status not in _PASSING or attempt == _ATTEMPTS:
                raise _refused(answer)
            lost = lost or answer.status != 429
            delay = answer.retry_after or self._first_delay * 2 ** (attempt - 1)
            await asyncio.sleep(min(delay, _LONGEST_DELAY))
        raise AssertionError

    async def _try(
        self,
        verb: Verb,
        path: str,
        body: Mapping[str, object] | None,
        query: Mapping[str, str] | None,
    ) -> Answer:
        """Send a request once; status 0 where there was no answer."""
        try:
            async with asyncio.timeout(_SECONDS):
                response = await self._send(verb, path, body, query)
                told = response.headers.get("Retry-After", "")
                after = float(told) if told.isdigit() else 0.0
                return Answer(response.status, await response.read(), after)
        except (ClientError, OSError) as error:
            return Answer(0, (str(error) or type(error).__name__).encode())

    async def next_change(
        self, path: str, *, name: str, since: str, seconds: float
    ) -> bytes | None:
        """Wait for the next change of an object of a list, and return the object as JSON.

        None where there was none for so long, and where the server did not want to watch: `since`,
        the version that is known, may be too old.
        """
        query = {"fieldSelector": f"metadata.name={name}", "resourceVersion": since}
        query |= {"watch": "true", "timeoutSeconds": str(max(1, round(seconds)))}
        with suppress(ClientError, OSError, ValueError, KeyError):
            async with asyncio.timeout(seconds + 1):
                async with await self._send("GET", path, None, query) as response:
                    line = await response.content.readline()
                event = json.loads(line)
                if response.status == 200 and event["type"] != "ERROR":
                    return json.dumps(event["object"]).encode()
        return None

    async def changed(self, path: str, *, name: str, since: str, seconds: float) -> Answer:
        """Return an object of a list after its next change, or as it is after some time.

        Status 404 where it is gone.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        told = await self.next_change(path, name=name, since=since, seconds=seconds)
        if told is not None:
            return Answer(200, told)
        if loop.time() - began < _WATCHED_SECONDS:
            await asyncio.sleep(min(seconds, _WATCHED_SECONDS))
        return await self.ask("GET", f"{path}/{name}", accept=(404,))

    async def execute(
        self, path: str, container: str, command: Sequence[str]
    ) -> ClientWebSocketResponse:
        """Run a program in a container, joined to a websocket by its standard streams."""
        query = [("container", container), *(("command", word) for word in command)]
        query += [("stdin", "true"), ("stdout", "true"), ("stderr", "true")]
        try:
            async with asyncio.timeout(_SECONDS):
                opening = await self._streams.call_api(
                    f"{path}/exec",
                    "GET",
                    query_params=query,
                    header_params={"Accept": "*/*"},
                    auth_settings=["BearerToken"],
                    _preload_content=False,
                )
                stream: ClientWebSocketResponse = await opening
                return stream
        except WSServerHandshakeError as error:
            raise ClusterError(
                f"The cluster does not connect to the sandbox: HTTP {error.status}.",
                status=error.status,
                mend=_MENDS.get(error.status, ""),
            ) from None
        except (ClientError, OSError) as error:
            raise _unreachable(str(error) or type(error).__name__) from None

    async def _send(
        self,
        verb: Verb,
        path: str,
        body: Mapping[str, object] | None,
        query: Mapping[str, str] | None,
    ) -> ClientResponse:
        kind = "application/merge-patch+json" if verb == "PATCH" else "application/json"
        response: ClientResponse = await self._api.call_api(
            path,
            verb,
            query_params=list((query or {}).items()),
            header_params={"Accept": "application/json", "Content-Type": kind},
            body=body,
            auth_settings=["BearerToken"],
            _preload_content=False,
        )
        return response


def _refused(answer: Answer) -> ClusterError:
    if not answer.status:
        return _unreachable(answer.body.decode(errors="replace"))
    try:
        told = _Complaint.model_validate_json(answer.body)
    except ValidationError:
        told = _Complaint()
    text = told.message or told.reason or f"HTTP {answer.status}"
    return ClusterError(
        f"The cluster refused: {text[:400].removesuffix('.')}.",
        status=answer.status,
        mend=_MENDS.get(answer.status, ""),
    )


def _unreachable(why: str) -> ClusterError:
    return ClusterError(
        f"The cluster cannot be reached: {why[:400].removesuffix('.')}.",
        status=0,
        mend="Check its address with: kubectl cluster-info.",
    )
