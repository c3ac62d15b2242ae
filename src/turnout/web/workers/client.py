"""Asks a gateway somewhere else, for a worker, how its models are best worked with."""

from http import HTTPStatus
from types import TracebackType
from typing import Final, Self

import aiohttp
from pydantic import BaseModel, ValidationError

from turnout.core.inference import BEHALF_HEADER
from turnout.core.money import Micros
from turnout.core.service.options import ServiceAddress
from turnout.errors import GatewayError, ModelUnavailableError
from turnout.web.workers.routes import Access

__all__ = ["AWAY", "AccessClient"]

AWAY: Final = "gateway_away"
"""Code of the error (503) that the gateway cannot be reached, or cannot answer for now."""

_SECONDS: Final = 30.0
_LARGEST: Final = 1 << 20


class _Said(BaseModel):
    message: str = ""
    code: str = ""


class _Refused(BaseModel):
    error: _Said = _Said()


class AccessClient:
    """A worker's questions to its gateway; open inside `async with`."""

    def __init__(self, gateway: ServiceAddress) -> None:
        self._url = f"{gateway.base_url}/v1/workers/access"
        self._headers = {"authorization": f"Bearer {gateway.key}"} if gateway.key else {}
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(_SECONDS))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def access(self, behalf: str = "", max_spend: Micros | None = None) -> Access:
        """Return how models are worked with for whom `behalf` names; empty: try the key alone.

        `ModelUnavailableError` where no model may work on the run. `GatewayError` otherwise, with
        the code `AWAY` where it may answer later.
        """
        if self._session is None:
            raise RuntimeError("AccessClient is used inside `async with`.")
        headers = {**self._headers, BEHALF_HEADER: behalf} if behalf else self._headers
        params = {} if max_spend is None else {"max_spend_micros": str(max_spend)}
        try:
            async with self._session.get(
                self._url, headers=headers, params=params, allow_redirects=False
            ) as answer:
                status, body = answer.status, await _body(answer)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._away(str(error) or type(error).__name__) from error
        if status == HTTPStatus.OK:
            try:
                return Access.model_validate_json(body)
            except ValidationError:
                raise self._away("its answer is none of Turnout's") from None
        raise self._refused(status, body)

    def _refused(self, status: int, body: bytes) -> GatewayError | ModelUnavailableError:
        try:
            said = _Refused.model_validate_json(body).error
        except ValidationError:
            said = _Said()
        if status == HTTPStatus.UNPROCESSABLE_ENTITY:
            return ModelUnavailableError(said.message)
        if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            return GatewayError(
                f"The gateway refuses this worker: {said.message}",
                status=status,
                code=said.code,
                mend="Make a key with `turnout keys create NAME --role worker` and export it as "
                "TURNOUT_GATEWAY_KEY.",
            )
        return self._away(said.message or f"it answered {status}")

    def _away(self, why: str) -> GatewayError:
        return GatewayError(
            f"The gateway at {self._url.partition('/v1/')[0]} cannot be asked: {why}.",
            status=503,
            code=AWAY,
            mend="Start it with `turnout serve`, or correct TURNOUT_GATEWAY.",
        )


async def _body(answer: aiohttp.ClientResponse) -> bytes:
    """Return what was answered, as much of it as one of ours may hold."""
    body = bytearray()
    async for chunk in answer.content.iter_chunked(1 << 14):
        body += chunk
        if len(body) > _LARGEST:
            break
    return bytes(body)
