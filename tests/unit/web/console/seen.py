"""The console on stores in memory, and people who are signed in with the keys of its callers."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from html import unescape
from typing import Any

from starlette.testclient import TestClient
from tests.unit.web.rooms import CALLERS, Service

from turnout.core.clock import SystemClock
from turnout.core.govern.audit import Audited, AuditFilter, AuditPage
from turnout.core.ids import RequestId, RunId
from turnout.core.receipts import Receipt
from turnout.core.service.figures import RunFigures
from turnout.core.service.orders import OrderedRun
from turnout.core.service.repositories import RepositoryBook
from turnout.errors import GatewayError, StoreError
from turnout.gateway.exchange import Caller
from turnout.testing.memory.orders import MemoryOrders
from turnout.testing.stores import MemoryRecordStore
from turnout.web.console.app import ConsoleParts, build_console
from turnout.web.console.doors import COOKIE, Doorman, Signer
from turnout.web.console.runs.diff.keeping import Diffs
from turnout.web.console.runs.parts import RunPages
from turnout.web.console.runs.section import runs_section
from turnout.web.console.sections import Section
from turnout.web.runs.callers import Scope
from turnout.web.runs.intake import RunParts, take
from turnout.web.runs.orders import RunIn

SECRET = b"s" * 32


class Rooms(Service):
    """The rooms behind the console, without the routes of the API."""

    def use(self, book: RepositoryBook) -> None:
        """Work on the repositories of a book from now on."""
        self.book = book

    async def order(self, key: str = "red-member", **fields: Any) -> RunId:
        """Order a run and return its id."""
        scope = Scope(CALLERS[key], CALLERS[key].project)
        body = RunIn(**{"task": "Fix it.", "repo": "shop", **fields})
        return (await take(self.parts, scope, body, None)).run.run_id

    @property
    def parts(self) -> RunParts:
        """What pages and routes of runs work with."""
        return self._parts()


def rooms() -> Rooms:
    """Return rooms with stores in memory."""
    records = MemoryRecordStore()
    return Rooms(MemoryOrders(records), records)


@dataclass
class Holders:
    """Callers by the name of their key, which is also what the key is known by."""

    shut: set[str] = field(default_factory=set)
    """Keys that open nothing any more."""
    changed: dict[str, Caller] = field(default_factory=dict)
    """What the holders of some may do by now."""

    def enter(self, key: str, host: str) -> tuple[str, Caller]:
        """Let somebody in."""
        return key, self.again(key, host)

    def again(self, digest: str, host: str) -> Caller:
        """Know somebody again."""
        if digest not in CALLERS or digest in self.shut:
            raise GatewayError("The API key is wrong.", status=401, code="invalid_api_key")
        return self.changed.get(digest, CALLERS[digest])


@dataclass
class Audit:
    """Keeps changes in memory."""

    kept: list[Audited] = field(default_factory=list)
    away: bool = False

    async def add(self, change: Audited) -> None:
        """Keep a change."""
        if self.away:
            raise StoreError("The database is away.")
        self.kept.append(change)

    async def page(self, wanted: AuditFilter, *, before: int | None, limit: int) -> AuditPage:
        """Read none back."""
        raise NotImplementedError


class Shifted(SystemClock):
    """A clock that may be set."""

    def __init__(self) -> None:
        self.at: datetime | None = None
        self.ahead = 0.0
        """Seconds that have gone by beside those of the machine."""

    def now(self) -> datetime:
        """Return the moment that was set, else the machine's own."""
        return self.at or super().now()

    def monotonic(self) -> float:
        """Return the machine's seconds and those ahead."""
        return super().monotonic() + self.ahead


@dataclass
class Console:
    """The console, and what is behind it."""

    service: Rooms = field(default_factory=rooms)
    holders: Holders = field(default_factory=Holders)
    audit: Audit = field(default_factory=Audit)
    clock: Shifted = field(default_factory=Shifted)
    figures: dict[RunId, RunFigures] = field(default_factory=dict)
    receipts: dict[RequestId, Receipt] = field(default_factory=dict)
    more: tuple[Section, ...] = ()
    """Sections beside that of the runs."""
    keyless: bool = False
    diffs: Diffs = field(default_factory=Diffs)

    def __post_init__(self) -> None:
        """Join the rooms."""

        async def figures(runs: Collection[OrderedRun]) -> Mapping[RunId, RunFigures]:
            return self.figures

        async def receipt(run: OrderedRun, request_id: RequestId) -> Receipt | None:
            return self.receipts.get(request_id)

        self.pages = RunPages(self.service.parts, figures, receipt, clock=self.clock)
        self.doorman = Doorman(self.holders, Signer(SECRET), self.clock)
        self.build()

    def build(self) -> None:
        """Make the application of the parts."""
        self.app = build_console(
            ConsoleParts(
                doorman=self.doorman,
                audit=self.audit,
                sections=(runs_section(self.pages, self.diffs), *self.more),
                keyless=lambda: self.keyless,
                clock=self.clock,
            )
        )

    def guest(self) -> TestClient:
        """Return somebody who is not signed in."""
        return TestClient(self.app, raise_server_exceptions=False, follow_redirects=False)

    def person(self, key: str = "red-approver") -> "Person":
        """Return somebody who has signed in with a key."""
        client = self.guest()
        answer = client.post("/console/sign-in", data={"key": key})
        assert answer.status_code == 303, answer.text
        return Person(client)


@dataclass
class Person:
    """Somebody in front of a browser."""

    client: TestClient

    @property
    def cookie(self) -> str:
        """The session's cookie."""
        return self.client.cookies[COOKIE]

    def get(self, path: str, **options: Any) -> Any:
        """Open a page."""
        return self.client.get(f"/console{path}", **options)

    def part(self, path: str) -> Any:
        """Ask for a part of a page, as the page itself does."""
        return self.get(path, headers={"hx-request": "true"})

    def send(self, path: str, **fields: Any) -> Any:
        """Send a form, with what its page carries."""
        csrf = Signer(SECRET).csrf(self.cookie)
        return self.client.post(f"/console{path}", data={"csrf": csrf, **fields})


def words(answer: Any) -> str:
    """Return the text of a page, without its tags."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", answer.text)).split())
