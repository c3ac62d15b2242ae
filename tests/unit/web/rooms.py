"""The routes of runs on stores in memory, and callers of two projects by name of their key."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.unit.gateway.admin.admin_app import CATALOG, Explained

from turnout.core.clock import SystemClock
from turnout.core.events import (
    ApprovalAsked,
    Event,
    LoopEnded,
    PatchMade,
    RunEnded,
    RunStarted,
)
from turnout.core.ids import RunId
from turnout.core.runs import FileChange, Patch
from turnout.core.service.orders import OrderedRun
from turnout.core.service.publications import Publication
from turnout.core.service.repositories import RepositoryAccess, RepositoryBook
from turnout.core.tools import ToolCall
from turnout.errors import GatewayError, RepositoryError, UsageError
from turnout.gateway.access import sent_key
from turnout.gateway.admin.app import AdminParts, build_admin
from turnout.gateway.exchange import Caller
from turnout.gateway.policy.desk import PolicyDesk
from turnout.runs.durable.desk import Desk
from turnout.runs.durable.following import Following
from turnout.runs.durable.ports import OrderStore
from turnout.runs.ports import RecordStore
from turnout.testing.clock import FrozenClock
from turnout.testing.memory.orders import MemoryOrders
from turnout.testing.stores import MemoryPoliciesStore, MemoryRecordStore
from turnout.web.runs.intake import RunParts
from turnout.web.runs.routes import runs_router
from turnout.web.runs.streams import Streams

CALLERS = {
    "red-models": Caller("red-models", "red"),
    "red-viewer": Caller("red-viewer", "red", role="viewer"),
    "red-member": Caller("red-member", "red", ("team",), role="member"),
    "red-approver": Caller("red-approver", "red", role="approver"),
    "blue-approver": Caller("blue-approver", "blue", role="approver"),
    "boss": Caller("boss", admin=True),
}
BOOK = RepositoryBook(
    {"shop": "/srv/git/shop", "docs": "/srv/git/docs"},
    ("git.example.org",),
    {"shop": RepositoryAccess(push=True), "docs": RepositoryAccess(push=True)},
)
ASKED = ApprovalAsked(2, ToolCall("call-1", "run_command", '{"command":"make"}'), "run_command")
DIFF = b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-\xff\n+b\n"
PATCH = Patch(DIFF, (FileChange("a", "modified", 1, 1),))
END: tuple[Event, ...] = (
    LoopEnded("answered", "It is done."),
    PatchMade(PATCH),
    RunEnded("answered", "It is done."),
)


def authenticate(headers: Mapping[str, str]) -> Caller:
    """Admit the callers above, by the name of their key."""
    caller = CALLERS.get(sent_key(headers))
    if caller is None:
        raise GatewayError("The API key is wrong.", status=401, code="invalid_api_key")
    return caller


def granted(caller: Caller, policy: str | None, max_spend: int | None) -> None:
    """Refuse a policy that is not the caller's, and one cap on spend."""
    if max_spend == 13:
        raise GatewayError("No price.", status=403, code="price_unknown")
    if policy is not None and policy not in caller.policies:
        raise GatewayError("Not granted.", status=403, code="policy_not_granted")


async def has_base(repository: str, base: str) -> None:
    """Refuse one base."""
    if base == "nowhere":
        raise RepositoryError(f"{repository} has no commit `{base}`.")


def is_told(url: str) -> None:
    """Refuse addresses that are not encrypted."""
    if not url.startswith("https:"):
        raise UsageError("That is no address.")


def has_forge(repository: str) -> None:
    """Know of one repository at a forge."""
    if repository != "shop":
        raise UsageError("No forge has it.")


@dataclass
class Engine:
    """Works on nothing, and remembers what it was told."""

    told: list[tuple[str, RunId]] = field(default_factory=list)

    async def enqueue(self, run_id: RunId) -> None:
        """Note it."""
        self.told.append(("enqueue", run_id))

    async def cancel(self, run_id: RunId) -> None:
        """Note it."""
        self.told.append(("cancel", run_id))


@dataclass
class Service:
    """The routes, and the stores behind them."""

    orders: OrderStore
    records: RecordStore
    engine: Engine = field(default_factory=Engine)
    streams: Streams = field(default_factory=Streams)
    told: list[RunId] = field(default_factory=list)
    """Runs that somebody was told were ordered."""
    published: dict[RunId, Publication] = field(default_factory=dict)
    shut_after: dict[str, int] = field(default_factory=dict)
    """How often keys open something yet; those that are not in it always do."""

    def __post_init__(self) -> None:
        """Join the rooms."""
        clock = SystemClock()
        self.following = Following(self.orders, self.records, clock)
        self.desk = Desk(self.orders, self.records, self.engine, self.following, clock)
        self.use(BOOK)

    def use(self, book: RepositoryBook) -> None:
        """Work on the repositories of a book from now on."""
        self.book = book
        self.app = self._app()
        self.client = TestClient(self.app, raise_server_exceptions=False)

    def _authenticate(self, headers: Mapping[str, str]) -> Caller:
        key = sent_key(headers)
        left = self.shut_after.get(key)
        if left is not None:
            self.shut_after[key] = left - 1
        return authenticate({} if left is not None and left <= 0 else headers)

    def _app(self) -> FastAPI:
        parts = AdminParts(
            authenticate=self._authenticate,
            policies=PolicyDesk(MemoryPoliciesStore(), CATALOG, FrozenClock()),
            explain=Explained(),
            shapes={},
            routers=(runs_router(self._parts()),),
        )
        return build_admin(parts)

    def _parts(self) -> RunParts:
        return RunParts(
            self.desk,
            self.book,
            self.streams,
            granted,
            check_base=has_base,
            ordered=lambda run: self.told.append(run.run_id),
            check_notify=is_told,
            check_draft=has_forge,
            publications=self._published,
        )

    async def _published(self, run_ids: Collection[RunId]) -> Mapping[RunId, Publication]:
        return {run_id: self.published[run_id] for run_id in run_ids if run_id in self.published}

    def call(self, method: str, path: str, key: str = "red-member", **options: Any) -> Any:
        """Send a request with a key."""
        headers = {"authorization": f"Bearer {key}", **options.pop("headers", {})}
        return self.client.request(method, path, headers=headers, **options)

    def ordered(self, key: str = "red-member", **fields: Any) -> RunId:
        """Order a run and return its id."""
        body = {"task": "Fix it.", "repo": "shop", **fields}
        answer = self.call("POST", "/runs", key, json=body)
        assert answer.status_code == 201, answer.text
        return RunId(answer.json()["id"])

    async def begun(self, run_id: RunId, *events: Event) -> OrderedRun:
        """Begin a run as a worker would, and let these events happen."""
        run = await self.orders.claim("w", lambda _: run_id, now())
        assert run is not None
        first = RunStarted(run.order.task, "c" * 40, "loop")
        for event in (first, *events):
            await self.records.append(run_id, run.epoch, event, now())
            self.following.wake(run_id)
        return run

    async def waiting(self, run_id: RunId) -> None:
        """Let a run wait for a person."""
        run = await self.begun(run_id, ASKED)
        await self.orders.wait(run_id, run.epoch, ASKED)


def memory_service(streams: Streams | None = None) -> Service:
    """Return the routes on stores in memory."""
    records = MemoryRecordStore()
    return Service(MemoryOrders(records), records, streams=streams or Streams())


def now() -> datetime:
    """Return the moment."""
    return datetime.now(UTC)
