"""How the worker of a process reaches models: through its own gateway, or through another's."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from turnout.agent.client import HttpModelClient
from turnout.core.clock import Clock
from turnout.core.inference import RoutingAsk
from turnout.core.money import Micros
from turnout.core.service.options import ServiceAddress
from turnout.core.service.orders import Order
from turnout.errors import GatewayError, ModelUnavailableError
from turnout.gateway.access import Authenticate
from turnout.gateway.exchange import Caller
from turnout.gateway.keys.behalf import token_for
from turnout.gateway.server import serve
from turnout.runs.ports import ModelAccess, Report
from turnout.settings import Settings
from turnout.web.workers.client import AWAY, AccessClient
from turnout.web.workers.routes import Access
from turnout.wiring.gateway import Site, access_for, app_of
from turnout.wiring.sources import check_counted, check_priced

__all__ = ["OwnModels", "RemoteModels", "check_order", "open_own_models", "open_remote_models"]

_PATIENCE: Final = 900.0
"""Seconds that a run waits for a gateway which is away, as its model calls do."""
_LONGEST_PAUSE: Final = 10.0


def check_order(
    settings: Settings, site: Site, caller: Caller, policy: str | None, max_spend: Micros | None
) -> None:
    """Raise the `GatewayError` with which every model call of a run would be refused."""
    chosen, catalog = site.book.resolve(caller, RoutingAsk(policy=policy)), site.settled.catalog
    try:
        check_priced(settings.agent, chosen, catalog, caller.limits.spend_per_day)
        if max_spend is not None:
            check_counted(replace(settings.agent, max_spend=max_spend), chosen, catalog)
    except ModelUnavailableError as error:
        raise GatewayError(
            error.message, status=403, code="price_unknown", mend=error.mend
        ) from error


@dataclass(frozen=True, slots=True)
class OwnModels:
    """Models behind the gateway of this process."""

    settings: Settings
    site: Site
    authenticate: Authenticate
    """Finds whom a token of a worker names."""
    clock: Clock
    uds: Path | None = None
    """Private socket of the gateway; None: nobody works here."""
    lasting: bool = True
    """Whether the gateway outlives whoever works here, and keeps answers for the next one."""

    def check(self) -> None:
        """Refuse (`ModelUnavailableError`) to serve where no model can do the job."""
        access_for(self.settings, self.site)

    @asynccontextmanager
    async def of(self, order: Order) -> AsyncIterator[ModelAccess]:
        """Open a way to the gateway whose calls are charged to the one who ordered.

        `ModelUnavailableError` where the order's cap on spend would miss calls.
        """
        token = token_for(order.key, order.project, order.policy)
        access = self.ways(token, order.limits.max_spend)
        client = self._client(token)
        async with client:
            yield replace(access, client=client)

    def ways(self, token: str, max_spend: Micros | None) -> ModelAccess:
        """Return how models are best worked with for whom a token names, as `of` does."""
        if max_spend is not None:
            self._check_cap(token, max_spend)
        return access_for(self.settings, self.site)(self._client(token))

    def _client(self, token: str) -> HttpModelClient:
        return HttpModelClient(
            base_url="http://gateway/v1",
            uds=self.uds,
            api_key=token,
            clock=self.clock,
            lasting=self.lasting,
        )

    def _check_cap(self, token: str, max_spend: Micros) -> None:
        try:
            caller = self.authenticate({"authorization": f"Bearer {token}"})
            policy = self.site.book.resolve(caller, RoutingAsk())
        except GatewayError as error:
            raise ModelUnavailableError(error.message, mend=error.mend) from error
        config = replace(self.settings.agent, max_spend=max_spend)
        check_counted(config, policy, self.site.settled.catalog)


async def open_own_models(models: OwnModels, stack: AsyncExitStack) -> OwnModels:
    """Serve the gateway on a private socket for the worker of this process, until the stack ends.

    `ModelUnavailableError` where no model can do the job.
    """
    models.check()
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="turnout-"))
    # Its folder is closed to all other users: who reaches the socket is a worker of ours.
    uds = Path(folder) / "gateway.sock"
    await stack.enter_async_context(serve(app_of(models.site, models.authenticate), uds=uds))
    return replace(models, uds=uds)


@dataclass(frozen=True, slots=True)
class RemoteModels:
    """Models behind a gateway somewhere else, which this worker's key opens."""

    gateway: ServiceAddress
    asking: AccessClient
    clock: Clock

    @asynccontextmanager
    async def of(self, order: Order) -> AsyncIterator[ModelAccess]:
        """Open a way to the gateway whose calls are charged to the one who ordered.

        `ModelUnavailableError` where no model may work on it, or the gateway stays away.
        """
        token = token_for(order.key, order.project, order.policy)
        access = await self._access(token, order.limits.max_spend)
        client = HttpModelClient(
            base_url=f"{self.gateway.base_url}/v1",
            uds=None,
            api_key=self.gateway.key,
            clock=self.clock,
            lasting=True,
            behalf=token,
        )
        async with client:
            yield ModelAccess(client, access.strategy, access.warnings, access.escalated)

    async def _access(self, token: str, max_spend: Micros | None) -> Access:
        until, pause = self.clock.monotonic() + _PATIENCE, 0.5
        while True:
            try:
                return await self.asking.access(token, max_spend)
            except GatewayError as error:
                if self.clock.monotonic() >= until:
                    raise ModelUnavailableError(error.message, mend=error.mend) from error
            await self.clock.sleep(pause)
            pause = min(2.0 * pause, _LONGEST_PAUSE)


async def open_remote_models(
    gateway: ServiceAddress, clock: Clock, report: Report, stack: AsyncExitStack
) -> RemoteModels:
    """Return the way to a gateway; `ModelUnavailableError` where it refuses this worker's key.

    One that does not answer yet is told of, and waited for by each run.
    """
    asking = await stack.enter_async_context(AccessClient(gateway))
    try:
        await asking.access()
    except GatewayError as error:
        if error.code != AWAY:
            raise ModelUnavailableError(error.message, mend=error.mend) from error
        report(f"{error.message} Runs wait for it.")
    return RemoteModels(gateway, asking, clock)
