"""Model calls that outlast a gateway which is away: a run need not fail because it restarts."""

from typing import Final

from turnout.agent.base import ModelClient
from turnout.agent.wire import UNREACHABLE
from turnout.core.clock import Clock
from turnout.core.inference import ModelReply, ModelRequest
from turnout.errors import GatewayError

__all__ = ["PatientClient"]

_AWAY: Final = frozenset({UNREACHABLE, "store_unavailable"})
"""Codes of a gateway that cannot be reached, or whose database cannot."""
_LONGEST: Final = 900.0
_LONGEST_PAUSE: Final = 10.0


class PatientClient:
    """Sends a call again, under its own key, until the gateway is back; other errors come out."""

    def __init__(self, client: ModelClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def call(self, request: ModelRequest) -> ModelReply:
        """Make one model call; `GatewayError` also where the gateway stays away too long."""
        until, pause = self._clock.monotonic() + _LONGEST, 0.5
        while True:
            try:
                return await self._client.call(request)
            except GatewayError as error:
                if error.code not in _AWAY or self._clock.monotonic() >= until:
                    raise
            await self._clock.sleep(pause)
            pause = min(2.0 * pause, _LONGEST_PAUSE)
