"""A gateway for others: keys, the policies of the store, and the routes by which it is governed."""

import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from fastapi import APIRouter
from starlette.types import ASGIApp

from turnout import __version__
from turnout.core.clock import SystemClock
from turnout.core.govern.revisions import DEFAULT_POLICY
from turnout.core.receipts import Receipt
from turnout.gateway.access import open_access, shared_key
from turnout.gateway.admin.app import AdminParts, build_admin
from turnout.gateway.admin.audit import audit_router
from turnout.gateway.admin.keys import keys_router
from turnout.gateway.admin.noticed import noticed_router
from turnout.gateway.admin.usage import usage_router
from turnout.gateway.admin.webhooks import webhooks_router
from turnout.gateway.app import Ready, build_without_models
from turnout.gateway.evaluations.routes import evaluations_router
from turnout.gateway.keys.behalf import behalf_of, with_workers
from turnout.gateway.keys.desk import KeyDesk
from turnout.gateway.keys.ring import KeyRing
from turnout.gateway.policy.desk import PolicyDesk
from turnout.gateway.server import serve
from turnout.gateway.wire.shapes import HEARD
from turnout.runs.ports import Report
from turnout.settings import Settings
from turnout.store.audit import AuditStore
from turnout.store.database import open_database
from turnout.store.keys import KeysStore
from turnout.store.policies import PoliciesStore
from turnout.web.console.app import with_console
from turnout.wiring.console.desks import Governing
from turnout.wiring.evidence.evaluations import desk_of
from turnout.wiring.gateway import Ground, Site, app_of, ground_of, site_of
from turnout.wiring.serving.observing import Observing, open_observing
from turnout.wiring.state import database_of
from turnout.wiring.usage import usage_office

__all__ = ["Beside", "More", "OpenGateway", "is_loopback", "open_gateway"]


@dataclass(frozen=True, slots=True)
class More:
    """What is served beside a gateway."""

    routers: Sequence[APIRouter] = ()
    ready: Ready = lambda: True
    """Whether it can take work."""
    models: bool = True
    """Whether models are served there at all."""
    console: Callable[[Governing], ASGIApp] | None = None
    """Makes the pages for people; None: there are none."""


Beside = Callable[[Ground, Site, KeyRing, Observing], Awaitable[More]]
"""Opens more to serve beside a gateway, until the ground's stack ends."""


@dataclass(frozen=True, slots=True)
class OpenGateway:
    """A gateway that serves."""

    base_url: str
    """Without `/v1`."""
    models: tuple[str, ...]
    console: str = ""
    """Where the pages for people are; empty: there are none."""


@asynccontextmanager
async def open_gateway(
    settings: Settings,
    *,
    host: str,
    port: int,
    key: str,
    report: Report,
    on_receipt: Callable[[Receipt], None] | None = None,
    beside: Beside | None = None,
) -> AsyncIterator[OpenGateway]:
    """Serve the gateway on an address; without a key only to programs of this machine.

    An address that others can reach is served to nobody while there is no key, and `report` says
    so. `on_receipt` is told of each request, and must not wait. `beside` opens what else is served.
    """
    clock = SystemClock()
    async with (
        open_database(database_of(settings)) as database,
        AsyncExitStack() as stack,
    ):
        private = is_loopback(host)
        ring = KeyRing(
            KeysStore(database),
            clock,
            shared=shared_key(key) if key else None,
            keyless=open_access() if private and not key else None,
        )
        await stack.enter_async_context(ring)
        if not (key or ring.known or private):
            report(
                f"Others can reach {host}, and there is no key: every request is refused until "
                "`turnout keys create NAME` has made one."
            )
        ground = await ground_of(settings, database, clock, stack)
        observing = await stack.enter_async_context(
            open_observing(settings, database, clock, report)
        )

        def seen(receipt: Receipt) -> None:
            observing.receipt(receipt)
            if on_receipt is not None:
                on_receipt(receipt)

        site = await site_of(ground, report, "unknown", PoliciesStore(database), seen)
        more = More() if beside is None else await beside(ground, site, ring, observing)
        desks = await _desks(ground, site, ring)
        admin = _admin_app(desks, ground, site, ring, more.routers)
        callers = with_workers(ring.authenticate, behalf_of(ring.named, site.book.default))
        app = (
            app_of(site, callers, admin, more.ready)
            if more.models
            else build_without_models(HEARD, admin, more.ready)
        )
        app = observing.beside(app, ring)
        if more.console is not None:
            app = with_console(app, more.console(desks))
        bound = await stack.enter_async_context(serve(app, host=host, port=port))
        names = (d.model for d in site.settled.catalog.deployments)
        pages = f"{bound.base_url}/console/" if more.console is not None else ""
        yield OpenGateway(bound.base_url, tuple(dict.fromkeys(names)), pages)


async def _desks(ground: Ground, site: Site, ring: KeyRing) -> Governing:
    """Return the desks; what they open ends with the ground's stack."""
    database, clock, book = ground.database, ground.clock, site.book
    policies = PolicyDesk(
        PoliciesStore(database),
        site.settled.catalog,
        clock,
        own=ground.settings.policies,
        changed=book.refresh,
    )

    async def names() -> Collection[str]:
        return {DEFAULT_POLICY, *(policy.name for policy in book.policies())}

    keys = KeyDesk(KeysStore(database), clock, policies=names, changed=ring.refresh)
    # What adds usage up takes long: no request of a model waits behind it.
    aside = await ground.stack.enter_async_context(open_database(database_of(ground.settings)))
    office = usage_office(aside, clock)
    return Governing(policies, keys, office, AuditStore(aside), desk_of(site, clock))


def _admin_app(
    desks: Governing, ground: Ground, site: Site, ring: KeyRing, more: Sequence[APIRouter]
) -> ASGIApp:
    """Return the application of the admin routes."""
    office, clock = desks.office, ground.clock
    routers = [
        keys_router(desks.keys),
        usage_router(office.usage, clock),
        noticed_router(office.tools, office.happenings, clock),
        webhooks_router(office.webhooks),
        audit_router(desks.audit, clock),
        evaluations_router(desks.evaluations),
        *more,
    ]
    return build_admin(
        AdminParts(
            authenticate=ring.authenticate,
            policies=desks.policies,
            explain=site.engine.explain,
            shapes=HEARD,
            routers=routers,
            reports=office.tools,
            audit=AuditStore(ground.database),
            clock=clock,
            version=__version__,
        )
    )


def is_loopback(host: str) -> bool:
    """Return whether only programs of this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
