"""A gateway with the admin routes, its policies in a store, and three keys."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from fastapi import APIRouter
from starlette.types import ASGIApp

from turnout.core.clock import SystemClock
from turnout.core.policies import Policy
from turnout.errors import GatewayError
from turnout.gateway.access import sent_key
from turnout.gateway.admin.app import AdminParts, build_admin
from turnout.gateway.catalog import Catalog
from turnout.gateway.engine import Engine
from turnout.gateway.exchange import Caller
from turnout.gateway.policy.book import PolicyBook
from turnout.gateway.policy.desk import PolicyDesk
from turnout.gateway.policy.report import ToolReports
from turnout.gateway.wire.shapes import HEARD
from turnout.testing.gateway import GatewaySetup, RunningGateway, running_gateway
from turnout.testing.stores import MemoryPoliciesStore

CALLERS = {
    "boss": Caller("boss", admin=True),
    "dev": Caller("dev", policies=("team", "other")),
    "plain": Caller("plain"),
}


def authenticate(headers: Mapping[str, str]) -> Caller:
    """Admit the callers above, by the name of their key."""
    caller = CALLERS.get(sent_key(headers))
    if caller is None:
        raise GatewayError("The API key is wrong.", status=401, code="invalid_api_key")
    return caller


@dataclass
class Governed:
    """A gateway that serves, and a client for it."""

    gateway: RunningGateway
    http: aiohttp.ClientSession

    async def call(self, method: str, path: str, key: str = "boss", **options: Any) -> Any:
        """Send a request with a key and return status and body."""
        headers = {"authorization": f"Bearer {key}", **options.pop("headers", {})}
        url = f"{self.gateway.base_url}{path}"
        async with self.http.request(method, url, headers=headers, **options) as answer:
            return answer.status, await answer.json()

    async def apply(self, name: str, **table: Any) -> int:
        """Make a policy's next revision and return its number."""
        status, body = await self.call("PUT", f"/policies/{name}", json={"policy": table})
        assert status == 200, body
        return int(body["revision"]["revision"])

    async def chat(self, key: str = "dev", **fields: Any) -> Any:
        """Send a chat completion."""
        headers = fields.pop("headers", {})
        body = {"model": "auto", "messages": [{"role": "user", "content": "Hi"}], **fields}
        return await self.call("POST", "/chat/completions", key, json=body, headers=headers)


@dataclass
class Rooms:
    """What else is governed."""

    routers: list[APIRouter] = field(default_factory=list)
    reports: ToolReports | None = None


@asynccontextmanager
async def governed(
    catalog: Catalog, *own: Policy, rooms: Rooms | None = None
) -> AsyncIterator[Governed]:
    """Serve a catalog under the policies of a file and of a store."""
    store = MemoryPoliciesStore()
    book = PolicyBook(own, store)
    more = rooms or Rooms()
    desk = PolicyDesk(store, catalog, SystemClock(), own=own, changed=book.refresh)

    def admin(engine: Engine) -> ASGIApp:
        return build_admin(
            AdminParts(
                authenticate, desk, engine.explain, HEARD, more.routers, reports=more.reports
            )
        )

    setup = GatewaySetup(authenticate=authenticate, book=book, admin=admin)
    async with running_gateway(catalog, setup) as gateway, aiohttp.ClientSession() as http:
        yield Governed(gateway, http)
