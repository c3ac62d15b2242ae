"""Answers that are on record, in place of calls that an earlier worker has made."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from turnout.agent.base import ModelClient
from turnout.core.events import Event, ModelCallDone
from turnout.core.inference import ModelReply, ModelRequest
from turnout.errors import GatewayError

__all__ = ["RememberedClient"]

_CONFLICT: Final = 409


class RememberedClient:
    """Gives what is on record under a key; what is not is asked for."""

    def __init__(self, client: ModelClient, record: Iterable[Event]) -> None:
        self._client = client
        self._known = {
            event.idempotency_key: event for event in record if isinstance(event, ModelCallDone)
        }

    async def call(self, request: ModelRequest) -> ModelReply:
        """Return the reply of a call; `GatewayError` where it was refused or not served."""
        known = self._known.get(request.idempotency_key)
        if known is not None:
            return ModelReply(
                known.request_id,
                known.message,
                known.finish_reason,
                known.usage,
                known.routing,
                known.latency_ms,
                known.alternatives,
            )
        try:
            return await self._client.call(request)
        except GatewayError as error:
            if error.status != _CONFLICT:
                raise
        # Tests that say something else this time make another prompt of the call under way.
        another = replace(request, idempotency_key=f"{request.idempotency_key}-anew")
        return await self._client.call(another)
