"""How many tokens a request would send: the upstream's own count, or our estimate."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from turnout.core.ids import DeploymentId, ProviderName
from turnout.gateway.catalog import Catalog, Deployment
from turnout.gateway.exchange import InferenceRequest, UpstreamError
from turnout.gateway.ports import Upstream
from turnout.gateway.wire.messages import MessagesShape

__all__ = ["Counting"]

_PATIENCE = 10.0
"""Seconds after which our estimate has to do."""
_FOR_THE_CLIENT = frozenset({400, 413})
"""Refusals of the request itself: an estimate would hide them."""


class Counting:
    """Counts requests of the messages shape.

    It is no model call: whether it works says nothing of a deployment's health.
    """

    def __init__(self, upstream: Upstream, catalog: Catalog, messages: MessagesShape) -> None:
        self._upstream = upstream
        self._catalog = catalog
        self._messages = messages

    async def count(
        self,
        request: InferenceRequest,
        order: Sequence[DeploymentId],
        keys: Mapping[ProviderName, str] | None = None,
    ) -> int:
        """Return the tokens that the first deployment of the order would read.

        `keys`: those that take the place of the catalog's. `UpstreamError` where the upstream
        finds the request itself wrong.
        """
        deployment = self._catalog.deployment(order[0]) if order else None
        counted = None if deployment is None else await self._ask(request, deployment, keys or {})
        return request.input_tokens_estimate if counted is None else counted

    async def _ask(
        self, request: InferenceRequest, deployment: Deployment, keys: Mapping[ProviderName, str]
    ) -> int | None:
        provider = self._catalog.providers[deployment.provider]
        if provider.shape != "messages" or provider.exact_path:
            return None
        if (key := keys.get(provider.name)) is not None:
            provider = replace(provider, api_key=key)
        body = self._messages.count_body(request, deployment)
        path = self._messages.count_path
        try:
            async with asyncio.timeout(_PATIENCE):
                reply = await self._upstream.complete(provider, path, body, request.headers)
        except TimeoutError:
            return None
        except UpstreamError as error:
            if error.status in _FOR_THE_CLIENT:
                raise
            return None
        counted = reply.body.get("input_tokens")
        return counted if isinstance(counted, int) and counted >= 0 else None
