"""The evaluations that a service somewhere else routes by, over its API."""

from urllib.parse import quote

from turnout.core.json import JsonObject
from turnout.core.service.options import ServiceAddress
from turnout.web.client import ServiceClient

__all__ = ["EvaluationsClient"]


class EvaluationsClient(ServiceClient):
    """Asks about evaluations; bodies are those of `/v1/evaluations`."""

    def __init__(self, address: ServiceAddress) -> None:
        super().__init__(address, "evaluations")

    async def applied(self) -> JsonObject:
        """Return what is applied, and what of it counts."""
        return await self._json("GET", "")

    async def preview(self, evaluation: JsonObject) -> JsonObject:
        """Return what it would change to apply an evaluation."""
        return await self._json("POST", "/preview", json=evaluation)

    async def apply(self, evaluation: JsonObject) -> JsonObject:
        """Let the service route by an evaluation."""
        return await self._json("POST", "", json=evaluation)

    async def preview_undo(self, evaluation_id: str) -> JsonObject:
        """Return what it would change to take an evaluation back."""
        return await self._json("GET", f"/{quote(evaluation_id, safe='')}/undo")

    async def undo(self, evaluation_id: str) -> JsonObject:
        """Take an evaluation back."""
        return await self._json("DELETE", f"/{quote(evaluation_id, safe='')}")
