"""The service in one process: the API of runs, the gateway, and a worker."""

import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from turnout.agent.client import HttpModelClient
from turnout.core.govern.happenings import Happening
from turnout.core.inference import RoutingAsk
from turnout.core.receipts import Receipt
from turnout.core.service.orders import Order
from turnout.gateway.exchange import Caller
from turnout.gateway.keys.behalf import behalf_of, token_for
from turnout.gateway.keys.ring import KeyRing
from turnout.gateway.server import BoundAddress, serve
from turnout.runs.ports import ModelAccess, Report
from turnout.settings import Settings
from turnout.web.runs.routes import RunParts, runs_router
from turnout.web.runs.streams import Streams
from turnout.wiring.durable import open_durable
from turnout.wiring.gateway import Ground, Site, access_for, app_of
from turnout.wiring.serving.gateway import More, OpenGateway, open_gateway

__all__ = ["open_serving"]


@asynccontextmanager
async def open_serving(
    settings: Settings,
    *,
    host: str,
    port: int,
    key: str,
    report: Report,
    on_receipt: Callable[[Receipt], None] | None = None,
) -> AsyncIterator[OpenGateway]:
    """Serve runs and models on an address, and work on what is ordered.

    At the end the streams of clients are closed, calls under way have their time, and every run is
    left for the next process to go on with.
    """
    streams = Streams()

    async def beside(ground: Ground, site: Site, ring: KeyRing) -> More:
        return await _runs(ground, site, ring, streams)

    async with open_gateway(
        settings,
        host=host,
        port=port,
        key=key,
        report=report,
        on_receipt=on_receipt,
        beside=beside,
    ) as gateway:
        try:
            yield gateway
        finally:
            streams.close()


async def _runs(ground: Ground, site: Site, ring: KeyRing, streams: Streams) -> More:
    settings, stack = ground.settings, ground.stack
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="turnout-"))
    # Its folder is closed to all other users: who reaches the socket is a worker of ours.
    app = app_of(site, behalf_of(ring.named))
    bound = await stack.enter_async_context(serve(app, uds=Path(folder) / "gateway.sock"))
    models = _Models(ground, site, bound)
    models.check()

    async def tell(happening: Happening) -> None:
        site.notices.happened(happening)
        await site.notices.write()

    durable = await stack.enter_async_context(
        open_durable(settings, ground.database, ground.clock, models.of, tell=tell)
    )

    def check_policy(caller: Caller, policy: str | None) -> None:
        site.book.resolve(caller, RoutingAsk(policy=policy))

    book = settings.service.repositories
    router = runs_router(RunParts(durable.desk, book, streams, check_policy, settings.surface))
    return More([router], ready=lambda: durable.engine.healthy and not streams.closed)


@dataclass(frozen=True, slots=True)
class _Models:
    ground: Ground
    site: Site
    bound: BoundAddress

    def check(self) -> None:
        """Refuse (`ModelUnavailableError`) to serve where no model can do the job."""
        access_for(self.ground.settings, self.site)

    @asynccontextmanager
    async def of(self, order: Order) -> AsyncIterator[ModelAccess]:
        """Open a way to the gateway whose calls are charged to the one who ordered."""
        client = HttpModelClient(
            base_url=f"{self.bound.base_url}/v1",
            uds=self.bound.uds,
            api_key=token_for(order.key, order.project, order.policy),
            clock=self.ground.clock,
            lasting=True,
        )
        access_by = access_for(self.ground.settings, self.site)
        async with client:
            yield access_by(client)
