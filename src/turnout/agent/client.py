"""The way to the gateway, over HTTP like any other client's."""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp

from turnout.agent.wire import (
    INVALID_REPLY,
    UNREACHABLE,
    decode_error,
    decode_reply,
    encode_request,
)
from turnout.core.clock import Clock
from turnout.core.ids import RunId
from turnout.core.inference import (
    BEHALF_HEADER,
    CALL_KIND_HEADER,
    LASTING_HEADER,
    ModelReply,
    ModelRequest,
)
from turnout.core.observe.spans import run_span
from turnout.errors import GatewayError

__all__ = ["HttpModelClient"]

_PAUSES = (0.5, 2.0, 8.0)
_LONGEST_PAUSE = 60.0
_RETRIED = frozenset({429, 502, 503, 504})
_CONNECT_TIMEOUT = 10.0
_LARGEST_REPLY = 64 << 20


class HttpModelClient:
    """Calls models through a gateway at a URL or behind a unix socket; open inside `async with`.

    A call that met a busy or failing upstream, a rate limit or a broken connection is repeated
    at most three times under its own idempotency key. A cap of the session, a reply that says
    `x-should-retry: false` and a time-out are not repeated.
    """

    def __init__(
        self,
        *,
        base_url: str,
        uds: Path | None,
        api_key: str,
        clock: Clock,
        timeout: float = 900.0,
        lasting: bool = False,
        behalf: str = "",
    ) -> None:
        """Let the gateway go on with a call when we go away where it is `lasting`.

        `behalf` says whom a worker's calls are charged to, as `BEHALF_HEADER` does.
        """
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        self._uds = uds
        self._headers = {"content-type": "application/json"}
        if api_key:
            self._headers["authorization"] = f"Bearer {api_key}"
        if lasting:
            self._headers[LASTING_HEADER] = "1"
        if behalf:
            self._headers[BEHALF_HEADER] = behalf
        self._clock = clock
        self._timeout = timeout
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = aiohttp.UnixConnector(str(self._uds)) if self._uds else aiohttp.TCPConnector()
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=self._timeout, sock_connect=_CONNECT_TIMEOUT),
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def call(self, request: ModelRequest) -> ModelReply:
        """Make one model call; `GatewayError` where it was refused or could not be served."""
        body = encode_request(request)
        headers = {
            **self._headers,
            "idempotency-key": request.idempotency_key,
            CALL_KIND_HEADER: request.call_kind,
            **_traced(request),
        }
        for pause in _PAUSES:
            try:
                return await self._send(request, body, headers)
            except GatewayError as error:
                if error.retry_after is None or error.retry_after > _LONGEST_PAUSE:
                    raise
                await self._clock.sleep(max(pause, error.retry_after))
        return await self._send(request, body, headers)

    async def _send(
        self, request: ModelRequest, body: bytes, headers: Mapping[str, str]
    ) -> ModelReply:
        if self._session is None:
            raise RuntimeError("HttpModelClient is used inside `async with`.")
        started = self._clock.monotonic()
        try:
            async with self._session.post(self._url, data=body, headers=headers) as response:
                answer = await _read(response)
        except TimeoutError:
            raise _unreachable("the gateway did not answer in time", None) from None
        except (aiohttp.ClientError, OSError) as error:
            raise _unreachable(str(error) or type(error).__name__, 0.0) from None
        if response.status != 200:
            raise decode_error(response.status, answer, self._retry_after(response))
        latency = round((self._clock.monotonic() - started) * 1000)
        return decode_reply(answer, latency, request.tools)

    def _retry_after(self, response: aiohttp.ClientResponse) -> float | None:
        if response.status not in _RETRIED or response.headers.get("x-should-retry") == "false":
            return None
        asked = response.headers.get("retry-after", "0")
        try:
            return max(0.0, float(asked))
        except ValueError:
            pass
        try:
            return max(0.0, (parsedate_to_datetime(asked) - self._clock.now()).total_seconds())
        except (TypeError, ValueError):
            return 0.0


async def _read(response: aiohttp.ClientResponse) -> bytes:
    answer = bytearray()
    async for chunk in response.content.iter_chunked(1 << 16):
        answer += chunk
        if len(answer) > _LARGEST_REPLY:
            raise GatewayError(
                "The gateway's answer is larger than 64 MiB.", status=502, code=INVALID_REPLY
            )
    return bytes(answer)


def _traced(request: ModelRequest) -> dict[str, str]:
    """Say where the call is in the trace of its run."""
    session = request.routing.session
    if session is None:
        return {}
    return {"traceparent": run_span(RunId(session), request.idempotency_key).header()}


def _unreachable(why: str, retry_after: float | None) -> GatewayError:
    return GatewayError(
        f"The gateway could not be reached: {why}.",
        status=503,
        code=UNREACHABLE,
        mend="Check that it runs and that the base URL and the network are right.",
        retry_after=retry_after,
    )
