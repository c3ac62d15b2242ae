"""A whole gateway on a free loopback port, its stores in memory.

async with running_gateway(catalog_at(server.base_url, deployment("p/m"))) as gateway:
    ...  # any client against gateway.base_url
assert gateway.receipt().status == "ok"
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from starlette.types import ASGIApp

from turnout.core.clock import Clock, SystemClock
from turnout.core.ids import ProviderName
from turnout.core.policies import Policy
from turnout.core.receipts import Receipt
from turnout.gateway.access import Authenticate, open_access
from turnout.gateway.app import AppLimits, build_app
from turnout.gateway.catalog import Catalog, Deployment, Provider
from turnout.gateway.connections.port import NoConnections, ToolConnections
from turnout.gateway.dialog.conversation import Shape
from turnout.gateway.engine import Engine, EngineParts, Measures
from turnout.gateway.measure.live import LiveEvidence
from turnout.gateway.measure.warm import WarmCaches
from turnout.gateway.policy.book import PolicyBook
from turnout.gateway.ports import Books, Policies, ReplyStore, Upstream
from turnout.gateway.providers.authenticator import Authenticator
from turnout.gateway.providers.http import HttpUpstream
from turnout.gateway.routes.counting import counting_routes
from turnout.gateway.routes.models import model_routes
from turnout.gateway.routes.receipts import receipt_routes
from turnout.gateway.routes.responses import response_routes
from turnout.gateway.server import serve
from turnout.gateway.stages.attempts.fallback import Limits
from turnout.gateway.stages.connected import ConnectedServing
from turnout.gateway.stages.counting import Counting
from turnout.gateway.stages.recording import EngineStores
from turnout.gateway.stages.replay import Replays
from turnout.gateway.stages.serving import Serving
from turnout.gateway.wire.shapes import CHAT, HEARD, MESSAGES, RESPONSES, SPOKEN
from turnout.testing.books import MemoryBooks
from turnout.testing.connections import MemoryTurns
from turnout.testing.stores import MemoryReceiptsStore

__all__ = ["GatewaySetup", "RunningGateway", "catalog_at", "engine_of", "running_gateway"]


@dataclass(frozen=True, slots=True)
class GatewaySetup:
    """What a test may want otherwise."""

    policy: Policy = field(default_factory=Policy)
    policies: Sequence[Policy] = ()
    """Further ones, by name."""
    authenticate: Authenticate = field(default_factory=open_access)
    limits: Limits = field(default_factory=lambda: Limits(backoff=0.01))
    app_limits: AppLimits = field(default_factory=AppLimits)
    clock: Clock = field(default_factory=SystemClock)
    accounts: Mapping[str, Authenticator] = field(default_factory=dict)
    provider_keys: Mapping[str, str] = field(default_factory=dict)
    """Values of the variables that policies name for their own provider keys."""
    connections: ToolConnections = field(default_factory=NoConnections)
    books: Books | None = None
    """Real ones, in place of those in memory; receipts are then read there."""
    replies: ReplyStore | None = None
    """Those that belong to `books`."""
    evidence: LiveEvidence | None = None
    """What is known beforehand; None: nothing."""
    on_receipt: Callable[[Receipt], None] | None = None
    book: Policies | None = None
    """What governs, in place of the policies above."""
    admin: Callable[[Engine], ASGIApp] | None = None
    """Makes what serves the routes below `/v1` that are no model routes."""


@dataclass(frozen=True, slots=True)
class RunningGateway:
    """A gateway that serves, and what it has written down."""

    base_url: str
    """`/v1` included."""
    engine: Engine
    books: MemoryBooks

    @property
    def receipts(self) -> MemoryReceiptsStore:
        """Every receipt, in the order in which they were written."""
        return self.books.receipts

    def receipt(self) -> Receipt:
        """Return the newest receipt."""
        return list(self.receipts.receipts.values())[-1]


class _Told:
    def __init__(self, on_receipt: Callable[[Receipt], None] | None) -> None:
        self._on_receipt = on_receipt

    def saw(self, receipt: Receipt) -> None:
        if self._on_receipt is not None:
            self._on_receipt(receipt)


class _ProviderKeys:
    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def of(self, policy: Policy) -> Mapping[ProviderName, str]:
        return {
            ProviderName(name): self._values[variable]
            for name, variable in policy.provider_keys
            if variable in self._values
        }

    def unset(self, policy: Policy) -> Mapping[ProviderName, str]:
        return {
            ProviderName(name): variable
            for name, variable in policy.provider_keys
            if variable not in self._values
        }


def catalog_at(
    base_url: str,
    *deployments: Deployment,
    idle_timeout: float = 5.0,
    api_key: str = "",
    shape: Shape = "chat",
) -> Catalog:
    """Return a catalog whose providers all live at `base_url` and speak `shape`."""
    providers = {
        deployment.provider: Provider(
            name=deployment.provider,
            base_url=base_url,
            api_key=api_key,
            connect_timeout=2.0,
            idle_timeout=idle_timeout,
            shape=shape,
            key_header="x-api-key" if shape == "messages" else "bearer",
        )
        for deployment in deployments
    }
    return Catalog(providers=providers, deployments=deployments)


def engine_of(
    catalog: Catalog, upstream: Upstream, books: MemoryBooks, setup: GatewaySetup
) -> Engine:
    """Return an engine that asks `upstream` and reads and writes `books`."""
    evidence = setup.evidence or LiveEvidence(setup.clock)
    replays = Replays(setup.replies or books.replies, setup.clock)
    charged = setup.books or books
    stores = EngineStores(charged, books.receipts, books.affinity, books.responses, replays)
    parts = EngineParts(
        policies=setup.book or PolicyBook((setup.policy, *setup.policies)),
        catalog=catalog,
        serving=_serving(setup, upstream, catalog, evidence, charged),
        counting=Counting(upstream, catalog, MESSAGES),
        stores=stores,
        measures=Measures(evidence, WarmCaches(setup.clock)),
        noticing=_Told(setup.on_receipt),
        provider_keys=_ProviderKeys(setup.provider_keys),
        clock=setup.clock,
    )
    return Engine(parts)


@asynccontextmanager
async def running_gateway(
    catalog: Catalog, setup: GatewaySetup | None = None
) -> AsyncIterator[RunningGateway]:
    """Serve a catalog until the block ends."""
    chosen = setup or GatewaySetup()
    books = MemoryBooks()
    async with HttpUpstream(chosen.clock, chosen.accounts) as upstream:
        engine = engine_of(catalog, upstream, books, chosen)
        routes = [
            *model_routes(engine, chosen.authenticate, CHAT, MESSAGES),
            *receipt_routes(engine, chosen.authenticate, CHAT),
            *response_routes(books.responses, chosen.authenticate, RESPONSES),
            *counting_routes(engine, chosen.authenticate, MESSAGES),
        ]
        limits = chosen.app_limits
        admin = chosen.admin(engine) if chosen.admin else None
        app = build_app(
            engine, chosen.authenticate, HEARD, routes=routes, admin=admin, limits=limits
        )
        async with serve(app, host="127.0.0.1") as bound:
            yield RunningGateway(f"{bound.base_url}/v1", engine, books)
        await engine.close()


def _serving(
    setup: GatewaySetup,
    upstream: Upstream,
    catalog: Catalog,
    evidence: LiveEvidence,
    books: Books,
) -> ConnectedServing:
    serving = Serving(upstream, SPOKEN, HEARD, catalog, evidence, setup.clock, setup.limits)
    return ConnectedServing(
        serving, setup.connections, MemoryTurns(), catalog, setup.clock, left=books.left
    )
