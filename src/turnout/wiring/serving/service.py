"""The service in one process: the API of runs, the gateway, and a worker."""

import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from turnout.agent.client import HttpModelClient
from turnout.core.govern.happenings import Happening
from turnout.core.inference import RoutingAsk
from turnout.core.receipts import Receipt
from turnout.core.service.orders import Order, OrderedRun
from turnout.errors import GatewayError, ModelUnavailableError
from turnout.gateway.access import Authenticate
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
from turnout.wiring.serving.places import Places
from turnout.wiring.sources import check_counted

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
    on_run: Callable[[str], None] | None = None,
) -> AsyncIterator[OpenGateway]:
    """Serve runs and models on an address, and work on what is ordered.

    `RepositoryError` where a repository of this machine that is to be worked on is not there.

    At the end the streams of clients are closed, calls under way have their time, and every run is
    left for the next process to go on with. `on_run` is told in a sentence that a run was ordered,
    begins, waits or has ended, and must not wait.
    """
    streams = Streams()
    places = Places(settings.service.repositories)
    await places.check()

    async def beside(ground: Ground, site: Site, ring: KeyRing) -> More:
        return await _runs(ground, site, ring, streams, places, on_run or _let_pass)

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


def _let_pass(said: str) -> None:
    """Tell nobody."""


async def _runs(
    ground: Ground,
    site: Site,
    ring: KeyRing,
    streams: Streams,
    places: Places,
    on_run: Callable[[str], None],
) -> More:
    settings, stack = ground.settings, ground.stack
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="turnout-"))
    # Its folder is closed to all other users: who reaches the socket is a worker of ours.
    authenticate = behalf_of(ring.named)
    app = app_of(site, authenticate)
    bound = await stack.enter_async_context(serve(app, uds=Path(folder) / "gateway.sock"))
    models = _Models(ground, site, authenticate, bound)
    models.check()

    async def tell(happening: Happening) -> None:
        on_run(happening.text)
        site.notices.happened(happening)
        await site.notices.write()

    durable = await stack.enter_async_context(
        open_durable(settings, ground.database, ground.clock, models.of, tell=tell)
    )

    def check_policy(caller: Caller, policy: str | None) -> None:
        site.book.resolve(caller, RoutingAsk(policy=policy))

    def ordered(run: OrderedRun) -> None:
        order = run.order
        on_run(
            f"Run {run.run_id} of project {order.project} was ordered by key {order.key}: "
            f"{order.task.repository} at {order.task.base}."
        )

    parts = RunParts(
        desk=durable.desk,
        repositories=places.book,
        streams=streams,
        check_policy=check_policy,
        check_base=places.check_base,
        ordered=ordered,
        surface=settings.surface,
    )
    router = runs_router(parts)
    return More([router], ready=lambda: durable.engine.healthy and not streams.closed)


@dataclass(frozen=True, slots=True)
class _Models:
    ground: Ground
    site: Site
    authenticate: Authenticate
    bound: BoundAddress

    def check(self) -> None:
        """Refuse (`ModelUnavailableError`) to serve where no model can do the job."""
        access_for(self.ground.settings, self.site)

    @asynccontextmanager
    async def of(self, order: Order) -> AsyncIterator[ModelAccess]:
        """Open a way to the gateway whose calls are charged to the one who ordered.

        `ModelUnavailableError` where the order's cap on spend would miss calls.
        """
        token = token_for(order.key, order.project, order.policy)
        self._check_cap(order, token)
        client = HttpModelClient(
            base_url=f"{self.bound.base_url}/v1",
            uds=self.bound.uds,
            api_key=token,
            clock=self.ground.clock,
            lasting=True,
        )
        access_by = access_for(self.ground.settings, self.site)
        async with client:
            yield access_by(client)

    def _check_cap(self, order: Order, token: str) -> None:
        if order.limits.max_spend is None:
            return
        try:
            caller = self.authenticate({"authorization": f"Bearer {token}"})
            policy = self.site.book.resolve(caller, RoutingAsk())
        except GatewayError as error:
            raise ModelUnavailableError(error.message, mend=error.mend) from error
        config = replace(self.ground.settings.agent, max_spend=order.limits.max_spend)
        check_counted(config, policy, self.site.settled.catalog)
