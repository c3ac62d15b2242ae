"""One request as each deployment is asked it."""

import hashlib
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, replace

import orjson

from turnout.core.json import JsonObject
from turnout.gateway.catalog import Catalog, Deployment, Provider
from turnout.gateway.dialog.conversation import Conversation, Shape
from turnout.gateway.dialog.pairs import check_pairs
from turnout.gateway.dialog.thoughts import with_thoughts
from turnout.gateway.exchange import InferenceRequest, ServerEvent
from turnout.gateway.ports import Upstream
from turnout.gateway.stages.answers import not_streamed
from turnout.gateway.stages.trail import Trail
from turnout.gateway.wire.base import ClientShape, ReadReply, UpstreamShape

__all__ = ["Asked", "Asking", "Tongues"]


@dataclass(frozen=True, slots=True)
class Tongues:
    """The shapes that are spoken, on either side."""

    spoken: Mapping[Shape, UpstreamShape]
    heard: Mapping[Shape, ClientShape]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as one deployment gets it."""

    shape: UpstreamShape
    provider: Provider
    deployment: Deployment
    request: InferenceRequest
    """Its body is the one that is sent, where the client speaks another shape."""
    body: JsonObject
    headers: Mapping[str, str]
    whole: bool
    """Whether it is asked whole though its client wants a stream."""

    async def answer(self, upstream: Upstream) -> ReadReply:
        """Return the answer; `UpstreamError` where there is none."""
        reply = await upstream.complete(self.provider, self.shape.path, self.body, self.headers)
        return self.shape.read(reply.body, self.request, self.deployment)

    def events(self, upstream: Upstream) -> AsyncGenerator[ServerEvent, None]:
        """Return the events of the streamed answer."""
        return upstream.stream(self.provider, self.shape.path, self.body, self.headers)


class Asking:
    """Puts one request in the words of each deployment's API, translated at most once."""

    def __init__(self, trail: Trail, catalog: Catalog, tongues: Tongues) -> None:
        self._trail = trail
        self._request = trail.request
        self._catalog = catalog
        self._tongues = tongues
        self._said: Conversation | None = None

    def of(self, deployment: Deployment) -> Asked:
        """Return the request for a deployment; `GatewayError` (400) where it cannot be said."""
        provider = self._provider(deployment)
        shape = self._tongues.spoken[provider.shape]
        request = self._request
        whole = request.stream and shape.needs_whole(request, deployment)
        if whole:
            request = not_streamed(request)
        if provider.shape == request.shape:
            body = shape.prepare(request, deployment, None)
            headers = {**request.headers, **self._own(deployment, body)}
            return Asked(shape, provider, deployment, request, body, headers, whole)
        body = shape.prepare(request, deployment, self._told(deployment))
        sent = replace(request, body=body)
        headers = self._own(deployment, body)
        return Asked(shape, provider, deployment, sent, body, headers, whole)

    def _own(self, deployment: Deployment, body: JsonObject) -> dict[str, str]:
        """Return the headers that are ours rather than the client's."""
        onward = self._trail.onward
        traced = {} if onward is None else {"traceparent": onward.header()}
        return {**traced, **self._once(deployment, body)}

    def _once(self, deployment: Deployment, body: JsonObject) -> Mapping[str, str]:
        """Return the key under which a deployment is asked the same, however often.

        Where we end between its answer and our receipt, it can know what it has answered. Clients
        of ours that chose the same key share none there.
        """
        key = self._request.idempotency_key
        if key is None:
            return {}
        told = [self._trail.caller.key, key, deployment.id, body]
        digest = hashlib.sha256(orjson.dumps(told, option=orjson.OPT_SORT_KEYS)).hexdigest()
        return {"idempotency-key": f"turnout-{digest[:40]}"}

    def _told(self, deployment: Deployment) -> Conversation:
        if self._said is None:
            said = self._tongues.heard[self._request.shape].conversation(self._request)
            check_pairs(said)
            self._said = said
        return with_thoughts(
            self._said,
            self._request.thoughts,
            deployment.model,
            wanted=deployment.reasoning_back,
        )

    def _provider(self, deployment: Deployment) -> Provider:
        provider = self._catalog.providers[deployment.provider]
        key = self._trail.provider_keys.get(provider.name)
        return provider if key is None else replace(provider, api_key=key, unset_key="")
