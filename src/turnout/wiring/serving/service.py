"""The service: the API of runs, the gateway and a worker, in one process or in several."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

from turnout.core.observe.news import RunNews, ordered
from turnout.core.receipts import Receipt
from turnout.core.service.options import EVERY_ROLE, ServiceRole
from turnout.core.service.orders import OrderedRun
from turnout.gateway.app import Ready
from turnout.gateway.keys.behalf import behalf_of
from turnout.gateway.keys.ring import KeyRing
from turnout.runs.durable.ports import ModelsFor
from turnout.runs.ports import Report
from turnout.runs.spend.reconcile import Reconciler
from turnout.settings import Settings, gateway_address
from turnout.store.publications import PublicationsStore
from turnout.store.record import RecordStore
from turnout.store.spend import SpendStore
from turnout.web.runs.intake import RunParts
from turnout.web.runs.routes import runs_router
from turnout.web.runs.spend import spend_router
from turnout.web.runs.streams import Streams
from turnout.web.workers.routes import workers_router
from turnout.wiring.console.opening import Console
from turnout.wiring.gateway import Ground, Site
from turnout.wiring.serving.durable import Durable, open_durable
from turnout.wiring.serving.forging import check_forges, open_webhooks
from turnout.wiring.serving.gateway import More, OpenGateway, is_loopback, open_gateway
from turnout.wiring.serving.models import (
    OwnModels,
    check_order,
    open_own_models,
    open_remote_models,
)
from turnout.wiring.serving.observing import Observing, OnRun
from turnout.wiring.serving.outlets import check_draft, check_notify, open_outlets
from turnout.wiring.serving.places import Places
from turnout.wiring.serving.queueing import check_queue, open_queue
from turnout.wiring.serving.worker import no_gateway, open_worker, telling

__all__ = ["Served", "open_serving"]


def _let_pass(news: RunNews) -> None:
    """Tell nobody."""


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Served:
    """What one process serves, and where."""

    host: str
    port: int
    key: str = ""
    """One that callers may send, beside those of the store."""
    roles: frozenset[ServiceRole] = EVERY_ROLE
    consumes: bool = False
    """Whether it takes orders from the queue that is set up."""


@asynccontextmanager
async def open_serving(
    settings: Settings,
    served: Served,
    report: Report,
    *,
    on_receipt: Callable[[Receipt], None] | None = None,
    on_run: OnRun = _let_pass,
) -> AsyncIterator[OpenGateway]:
    """Serve runs and models on an address, and work on what is ordered, as far as `roles` say.

    `RepositoryError` where a repository of this machine that is to be worked on is not there,
    `ConfigError` for a worker without a gateway, a forge with a repository that is not named, or a
    queue that is not set up.

    At the end the streams of clients are closed, calls under way have their time, and every run is
    left for the next process to go on with. `on_run` is told that a run was ordered, begins,
    waits or has ended.
    """
    check_forges(settings)
    if served.consumes:
        check_queue(settings)
    places = Places(settings.service.repositories)
    if "worker" in served.roles:
        await places.check()
    if served.roles == {"worker"}:
        opening = open_worker(settings, served.host, served.port, report, on_run)
        async with opening as worker:
            yield OpenGateway(worker.base_url, ())
        return
    streams = Streams()

    async def beside(ground: Ground, site: Site, ring: KeyRing, observing: Observing) -> More:
        front = _Front(ground, site, ring, served, streams, places, on_run, observing)
        return await front.open(report)

    async with open_gateway(
        settings,
        host=served.host,
        port=served.port,
        key=served.key,
        report=report,
        on_receipt=on_receipt,
        beside=beside,
    ) as gateway:
        try:
            yield gateway
        finally:
            streams.close()


@dataclass(frozen=True, slots=True)
class _Front:
    """What stands beside the gateway of a process that callers reach."""

    ground: Ground
    site: Site
    ring: KeyRing
    served: Served
    streams: Streams
    places: Places
    on_run: OnRun
    observing: Observing

    async def open(self, report: Report) -> More:
        """Open it; it ends with the ground's stack."""
        ground, roles = self.ground, self.served.roles
        gateway = "gateway" in roles
        behalf = behalf_of(self.ring.named, self.site.book.default)
        own = OwnModels(ground.settings, self.site, behalf, ground.clock)
        told = telling(self.site.notices, self.observing.telling(self.on_run))
        outlets = await ground.stack.enter_async_context(
            open_outlets(
                ground.settings,
                ground.database,
                ground.clock,
                publishes="worker" in roles,
                told=told,
            )
        )
        durable = await ground.stack.enter_async_context(
            open_durable(
                ground.settings,
                ground.database,
                ground.clock,
                await self._models(own, report),
                tell=outlets.tell,
                saw=self.observing.entry,
            )
        )
        routers = [workers_router(own.ways)] if gateway else []
        consuming: Ready = _always
        console = None
        if "api" in roles:
            runs = self._runs(durable)
            routers += [runs_router(runs), spend_router(durable.desk, self._reconciler())]
            routers += await open_webhooks(ground, runs, self.ring.named)
            private = is_loopback(self.served.host)
            key = self.served.key
            console = Console(ground, self.site, self.ring, runs, key, private, gateway).app
            if self.served.consumes:
                consuming = await open_queue(ground, runs, self.ring, self.observing.metrics)
        return More(
            routers,
            ready=lambda: durable.engine.healthy and consuming() and not self.streams.closed,
            models=gateway,
            console=console,
        )

    async def _models(self, own: OwnModels, report: Report) -> ModelsFor | None:
        """Return the way to models of the worker of this process, if it has one."""
        if "worker" not in self.served.roles:
            return None
        if "gateway" in self.served.roles:
            return (await open_own_models(own, self.ground.stack)).of
        address = gateway_address()
        if address is None:
            raise no_gateway()
        opening = open_remote_models(address, self.ground.clock, report, self.ground.stack)
        return (await opening).of

    def _runs(self, durable: Durable) -> RunParts:
        places, settings = self.places, self.ground.settings
        parts = RunParts(
            desk=durable.desk,
            repositories=places.book,
            streams=self.streams,
            check_policy=partial(check_order, settings, self.site),
            check_notify=partial(check_notify, settings),
            notifies=bool(settings.service.notify.secret_variable),
            check_draft=partial(check_draft, settings),
            publications=PublicationsStore(self.ground.database).of,
            ordered=self._ordered,
            surface=settings.surface,
        )
        if "worker" in self.served.roles:
            # Repositories of another machine are for its worker to look at.
            return replace(parts, check_base=places.check_base)
        return parts

    def _reconciler(self) -> Reconciler:
        database, clock = self.ground.database, self.ground.clock
        return Reconciler(RecordStore(database), SpendStore(database, clock), clock)

    def _ordered(self, run: OrderedRun) -> None:
        self.on_run(ordered(run))
