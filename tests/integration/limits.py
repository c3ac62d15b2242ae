"""Callers with keys of their own, who ask in every shape."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

import aiohttp

from turnout.core.clock import SystemClock
from turnout.core.govern.keys import KeyEntry, KeyLimits, KeyRecord
from turnout.core.money import Price
from turnout.gateway.catalog import Catalog
from turnout.gateway.keys.ring import KeyRing, digest_of
from turnout.gateway.ports import KeyStore
from turnout.testing.books import MemoryKeys
from turnout.testing.exchange import deployment
from turnout.testing.gateway import GatewaySetup, RunningGateway, running_gateway

PRICED = replace(deployment("p/m"), price=Price(input=1_000_000, output=1_000_000))
PATHS = {"chat": "/chat/completions", "messages": "/messages", "responses": "/responses"}
WAYS = [(shape, stream) for shape in PATHS for stream in (False, True)]
"""Every shape, whole and streamed."""
NOON = datetime.fromisoformat("2026-01-01T12:00:00+00:00")


class AtNoon(SystemClock):
    """A clock whose minute is never over."""

    def now(self) -> datetime:
        """Return noon."""
        return NOON


class Answer(NamedTuple):
    """What a client saw."""

    status: int
    headers: Mapping[str, str]
    text: str


@dataclass
class Client:
    """Somebody with a key."""

    http: aiohttp.ClientSession
    gateway: RunningGateway
    key: str

    async def ask(self, shape: str = "chat", *, stream: bool = False, **more: Any) -> Answer:
        """Send a request and read the whole answer."""
        async with self.http.post(**self.request(shape, stream=stream, **more)) as answer:
            return Answer(answer.status, answer.headers, await answer.text())

    def request(self, shape: str = "chat", *, stream: bool = False, **more: Any) -> dict[str, Any]:
        """Return what `http.post` takes for a request of a few words."""
        headers = {"authorization": f"Bearer {self.key}", **more.pop("headers", {})}
        base = more.pop("base", self.gateway.base_url)
        said = [{"role": "user", "content": more.pop("say", "Hello")}]
        body = {"model": "auto", "stream": stream, "max_tokens": 90, **more}
        if shape == "responses":
            body["input"], body["max_output_tokens"] = said, body.pop("max_tokens")
        else:
            body["messages"] = said
        return {"url": base + PATHS[shape], "json": body, "headers": headers}


@dataclass(frozen=True)
class KeyWith:
    """A key, and how the gateway is set up around it."""

    limits: KeyLimits = field(default_factory=KeyLimits)
    record: Mapping[str, Any] = field(default_factory=dict)
    setup: GatewaySetup = field(default_factory=GatewaySetup)
    store: KeyStore = field(default_factory=MemoryKeys)
    key: str = "tk-of-the-test"


@asynccontextmanager
async def client_of(catalog: Catalog, wanted: KeyWith) -> AsyncIterator[Client]:
    """Serve a catalog to one key."""
    clock = wanted.setup.clock
    record = KeyRecord("ci", "web", ("default",), wanted.limits, clock.now(), "tk-of…test")
    record = replace(record, **wanted.record)
    await wanted.store.add(KeyEntry(digest_of(wanted.key), record))
    async with KeyRing(wanted.store, clock) as ring, aiohttp.ClientSession() as http:
        setup = replace(wanted.setup, authenticate=ring.authenticate)
        async with running_gateway(catalog, setup) as gateway:
            yield Client(http, gateway, wanted.key)
