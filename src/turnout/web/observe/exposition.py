"""`GET /metrics`: what Prometheus reads."""

import asyncio
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from turnout.core.clock import Clock
from turnout.core.observe.metrics import CONTENT_TYPE, Metrics
from turnout.core.observe.standing import Watching
from turnout.errors import GatewayError, StoreError
from turnout.gateway.access import sent_key
from turnout.gateway.admin.callers import admin_required
from turnout.gateway.admin.errors import refusal
from turnout.gateway.delivery import header_map
from turnout.gateway.exchange import Caller

__all__ = ["Exposition", "Readers", "ServiceMetrics", "with_metrics"]

_PATH: Final = "/metrics"
_FRESH: Final = 1.0
"""Seconds for which a look at the database counts, however often metrics are read."""
_PATIENCE: Final = 5.0
"""Seconds that a look may take."""
_STALE: Final = 5.0
"""Seconds without a sign of life after which a worker does not count."""


@dataclass(frozen=True, slots=True)
class Readers:
    """Who may read the metrics, which are of all projects together."""

    authenticate: Callable[[Mapping[str, str]], Caller]
    open: Callable[[], bool]
    """Whether there never was a key, so that whoever is admitted may."""
    key: str
    """Opens them and nothing else; empty: there is none."""

    def check(self, headers: Mapping[str, str]) -> None:
        """Refuse (`GatewayError`, 401 or 403) who may not; header names are in lower case."""
        sent = sent_key(headers).encode(errors="surrogatepass")
        if self.key and hmac.compare_digest(sent, self.key.encode()):
            return
        caller = self.authenticate(headers)
        if not (caller.admin or self.open()):
            raise admin_required()


class ServiceMetrics:
    """How the service stands over all its processes, as the database knows it."""

    def __init__(self, metrics: Metrics, watching: Watching, clock: Clock) -> None:
        self._watching = watching
        self._clock = clock
        self._looking = asyncio.Lock()
        self._looked_at: float | None = None
        self._runs = metrics.gauge(
            "turnout_runs", "Runs that have not ended, by state, over all processes.", ("state",)
        )
        self._age = metrics.gauge(
            "turnout_queue_oldest_seconds", "Time since the oldest queued run was ordered."
        )
        self._workers = metrics.gauge(
            "turnout_workers", "Workers that gave a sign of life within five seconds."
        )
        self._up = metrics.gauge("turnout_database_up", "Whether the database answered.")
        self._took = metrics.gauge(
            "turnout_database_look_seconds", "How long the newest look at the database took."
        )

    async def look(self) -> None:
        """Take the figures of this moment; where the database does not answer, say so."""
        async with self._looking:
            now = self._clock.monotonic()
            if self._looked_at is not None and now - self._looked_at < _FRESH:
                return
            try:
                async with asyncio.timeout(_PATIENCE):
                    stands = await self._watching.standing(self._clock.now(), stale=_STALE)
            except (StoreError, TimeoutError):
                self._up.set({(): 0})
                for unknown in (self._runs, self._age, self._workers, self._took):
                    unknown.set({})
            else:
                self._up.set({(): 1})
                self._runs.set({(state,): count for state, count in stands.runs.items()})
                self._age.set({(): max(0.0, stands.oldest_queued)})
                self._workers.set({(): stands.workers})
                self._took.set({(): self._clock.monotonic() - now})
            self._looked_at = self._clock.monotonic()


class Exposition:
    """Serves the metrics of this process to those who may read them."""

    def __init__(
        self,
        metrics: Metrics,
        readers: Readers,
        service: ServiceMetrics,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        """`look` takes what else is only known at the moment; it must not wait."""
        self._metrics = metrics
        self._readers = readers
        self._service = service
        self._look = look

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        await (await self._answer(Request(scope)))(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        if request.method not in {"GET", "HEAD"}:
            return Response(status_code=405, headers={"allow": "GET"})
        try:
            self._readers.check(header_map(request.scope))
        except GatewayError as error:
            return refusal(error)
        await self._service.look()
        self._look()
        return Response(self._metrics.text(), media_type=CONTENT_TYPE)


def with_metrics(app: ASGIApp, exposition: ASGIApp) -> ASGIApp:
    """Return an application that serves `/metrics` beside what `app` serves."""

    async def both(scope: Scope, receive: Receive, send: Send) -> None:
        wanted = scope["type"] == "http" and scope["path"] == _PATH
        await (exposition if wanted else app)(scope, receive, send)

    return both
