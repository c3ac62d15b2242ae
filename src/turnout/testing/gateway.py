"""A whole gateway on a free loopback port, its stores in memory.

async with running_gateway(catalog_at(server.base_url, deployment("p/m"))) as gateway:
    ...  # any client against gateway.base_url
assert gateway.receipt().status == "ok"
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from turnout.core.clock import Clock, SystemClock
from turnout.core.policies import Policy
from turnout.core.receipts import Receipt
from turnout.gateway.access import Authenticate, open_access
from turnout.gateway.app import AppLimits, build_app
from turnout.gateway.catalog import Catalog, Deployment, Provider
from turnout.gateway.engine import Engine, EngineStores
from turnout.gateway.measure.live import LiveEvidence
from turnout.gateway.providers.openai_compatible import OpenAICompatible
from turnout.gateway.server import serve
from turnout.gateway.stages.fallback import Limits
from turnout.testing.stores import (
    MemoryAffinityStore,
    MemoryReceiptsStore,
    MemorySessionLedgerStore,
)

__all__ = ["GatewaySetup", "RunningGateway", "catalog_at", "running_gateway"]


@dataclass(frozen=True, slots=True)
class GatewaySetup:
    """What a test may want otherwise."""

    policy: Policy = field(default_factory=Policy)
    authenticate: Authenticate = field(default_factory=open_access)
    limits: Limits = field(default_factory=lambda: Limits(backoff=0.01))
    app_limits: AppLimits = field(default_factory=AppLimits)
    clock: Clock = field(default_factory=SystemClock)


@dataclass(frozen=True, slots=True)
class RunningGateway:
    """A gateway that serves, and what it has written down."""

    base_url: str
    """`/v1` included."""
    engine: Engine
    receipts: MemoryReceiptsStore
    ledger: MemorySessionLedgerStore

    def receipt(self) -> Receipt:
        """Return the newest receipt."""
        return list(self.receipts.receipts.values())[-1]


def catalog_at(
    base_url: str, *deployments: Deployment, idle_timeout: float = 5.0, api_key: str = ""
) -> Catalog:
    """Return a catalog whose providers all live at `base_url`."""
    providers = {
        deployment.provider: Provider(
            name=deployment.provider,
            base_url=base_url,
            api_key=api_key,
            connect_timeout=2.0,
            idle_timeout=idle_timeout,
        )
        for deployment in deployments
    }
    return Catalog(providers=providers, deployments=deployments)


@asynccontextmanager
async def running_gateway(
    catalog: Catalog, setup: GatewaySetup | None = None
) -> AsyncIterator[RunningGateway]:
    """Serve a catalog until the block ends."""
    chosen = setup or GatewaySetup()
    receipts, ledger = MemoryReceiptsStore(), MemorySessionLedgerStore()
    async with OpenAICompatible(chosen.clock) as upstream:
        engine = Engine(
            policy=chosen.policy,
            catalog=catalog,
            upstream=upstream,
            evidence=LiveEvidence(chosen.clock),
            stores=EngineStores(receipts, ledger, MemoryAffinityStore()),
            clock=chosen.clock,
            limits=chosen.limits,
        )
        app = build_app(engine, chosen.authenticate, chosen.app_limits)
        async with serve(app, host="127.0.0.1") as bound:
            yield RunningGateway(f"{bound.base_url}/v1", engine, receipts, ledger)
        await engine.close()
