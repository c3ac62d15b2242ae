"""Webhooks over HTTP: signed, of people who may ask, and one run for one wish."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from fastapi import APIRouter, FastAPI
from starlette.testclient import TestClient
from tests.unit.gateway.admin.admin_app import CATALOG, Explained
from tests.unit.web.rooms import BOOK, CALLERS, Engine, authenticate

from turnout.core.govern.audit import Audited
from turnout.core.service.forges import Forge, ForgeKind, Origin, Standing, ThreadKind
from turnout.core.service.orders import OrderedRun, RunFilter
from turnout.core.service.repositories import RepositoryAccess, RepositoryBook
from turnout.errors import ForgeError, GatewayError, TurnoutError
from turnout.gateway.admin.app import AdminParts, build_admin
from turnout.gateway.admin.callers import Gate
from turnout.gateway.admin.errors import refused
from turnout.gateway.delivery import AppLimits
from turnout.gateway.exchange import Caller
from turnout.gateway.policy.desk import PolicyDesk
from turnout.runs.durable.desk import Desk
from turnout.runs.durable.following import Following
from turnout.runs.forges.desk import OpenForge
from turnout.runs.forges.hooks.triggers import Person
from turnout.runs.forges.ports import Change
from turnout.testing.clock import FrozenClock
from turnout.testing.forges import Delivery, comment, labelled, signed
from turnout.testing.memory.orders import MemoryOrders
from turnout.testing.stores import MemoryPoliciesStore, MemoryRecordStore
from turnout.web.forges.routes import ForgeParts, forges_router
from turnout.web.runs.intake import RunParts

SECRET = "s3cret-of-hooks"
BASE = "b" * 40
DIFF = b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n"
KINDS: tuple[ForgeKind, ...] = ("github", "gitlab")
both = pytest.mark.parametrize("kind", KINDS)


@dataclass
class Client:
    """A forge that says what people may do, and what requests change."""

    standings: Mapping[str, Standing]
    diff: bytes = DIFF
    failing: ForgeError | None = None
    nods: bool = True
    asked: list[str] = field(default_factory=list)

    async def standing(self, path: str, person: Person) -> Standing:
        """Return what is known of a name."""
        self.asked.append(f"{path} {person.name}")
        if self.failing is not None:
            raise self.failing
        return self.standings.get(person.name, "none")

    async def nod(self, path: str, thread: ThreadKind, number: int, comment: int | None) -> None:
        """Note it, or fail."""
        if not self.nods:
            raise ForgeError("Reacting failed with 403.", passing=True)
        self.asked.append(f"nod {thread} {number} {comment}")

    async def change(self, path: str, number: int) -> Change:
        """Return one change for all."""
        return Change(BASE, self.diff)


@dataclass
class Room:
    """The route before a service in memory."""

    kind: ForgeKind
    client: Client
    clock: FrozenClock = field(default_factory=FrozenClock)
    variables: dict[str, str] = field(default_factory=lambda: {"S": SECRET})
    engine: Engine = field(default_factory=Engine)
    key: str = "red-member"
    starters: Standing = "write"
    book: RepositoryBook = BOOK
    audited: list[Audited] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Join the rooms."""
        records = MemoryRecordStore()
        self.orders = MemoryOrders(records)
        following = Following(self.orders, records, self.clock)
        self.desk = Desk(self.orders, records, self.engine, following, self.clock)

    def deliver(self, delivery: Delivery, *, name: str = "hub", **how: Any) -> Any:
        """Send a webhook, signed as it should be."""
        headers, body = signed(delivery, SECRET, self.clock.now(), **how)
        return self.send(headers, body, name=name)

    def send(self, headers: Mapping[str, str], body: bytes, *, name: str = "hub") -> Any:
        """Send what is given."""
        client = TestClient(self.app(), raise_server_exceptions=False)
        return client.post(f"/forges/{name}/webhook", headers=dict(headers), content=body)

    async def runs(self) -> list[OrderedRun]:
        """Return the runs of the project that the forge's key is of."""
        page = await self.orders.page("red", RunFilter(), before=None, limit=9)
        return list(page.runs)

    async def _note(self, change: Audited) -> None:
        self.audited.append(change)

    def router(self) -> APIRouter:
        """Return the route."""
        forge = Forge(
            name="hub",
            kind=self.kind,
            api="https://forge.example.org",
            secret_variable="S",
            token_variable="T",
            key=self.key,
            repositories={"acme/shop": "shop"},
            starters=self.starters,
        )
        parts = ForgeParts(
            forges={"hub": OpenForge(forge, self.client)},
            secrets=self.variables.get,
            named=_named,
            runs=RunParts(self.desk, self.book),
            audit=self._note,
            clock=self.clock,
        )
        return forges_router(parts)

    def app(self) -> FastAPI:
        """Return the route behind the gate of all admin routes."""
        app = FastAPI(exception_handlers={TurnoutError: refused}, openapi_url=None)
        app.include_router(self.router())
        app.add_middleware(Gate, authenticate=authenticate, limits=AppLimits())
        return app


def _named(name: str) -> Caller:
    if name not in CALLERS:
        raise GatewayError(f"There is no key {name!r}.", status=401, code="invalid_api_key")
    return CALLERS[name]


@pytest.fixture(params=KINDS)
def room(request) -> Room:
    """Return the route for each kind of forge."""
    return Room(request.param, Client({"ann": "write", "max": "maintain"}))


async def test_a_label_of_somebody_who_may_write_is_a_run(room: Room) -> None:
    """On the forge's key and in its project, with where to tell of its end."""
    answer = room.deliver(labelled(room.kind, "turnout"))
    assert answer.status_code == 201, answer.text
    (run,) = await room.runs()
    assert answer.json() == {"run": run.run_id, "ignored": None}
    assert answer.headers["location"] == f"/v1/runs/{run.run_id}"
    order = run.order
    assert (order.project, order.key, order.task.repository) == ("red", "red-member", "shop")
    assert order.labels == ("forge:hub", "issue:12")
    assert order.origin == Origin("hub", "acme/shop", "issue", 12, "ann", "Totals are wrong")
    assert "The total of an empty basket is 1." in order.task.prompt
    assert room.engine.told == [("enqueue", run.run_id)]
    (change,) = room.audited
    assert (change.actor, change.action, change.subject) == ("forge:hub", "order_run", run.run_id)
    assert (change.project, change.detail["person"]) == ("red", "ann")


async def test_a_comment_is_a_run_with_its_words_first(room: Room) -> None:
    """Before the data."""
    assert room.deliver(comment(room.kind, "/turnout fix only the basket")).status_code == 201
    assert room.client.asked == ["acme/shop ann", "nod issue 12 501"]
    (run,) = await room.runs()
    assert run.order.task.prompt.startswith("only the basket\n\n")


async def test_a_label_on_a_request_is_a_review_of_its_change(room: Room) -> None:
    """On the commit at which it began."""
    answer = room.deliver(labelled(room.kind, "turnout-review", thread="pull", number=3))
    assert answer.status_code == 201, answer.text
    (run,) = await room.runs()
    task = run.order.task
    assert (task.kind, task.base) == ("review", BASE)
    assert task.review is not None
    assert task.review.diff == DIFF
    assert run.order.origin == Origin("hub", "acme/shop", "pull", 3, "ann", "Totals are wrong")


async def test_a_delivery_that_comes_again_is_the_same_run(room: Room) -> None:
    """By what is signed: the id of the delivery may be anything."""
    wish = comment(room.kind, "/turnout fix")
    first = room.deliver(wish, delivery_id="d-1")
    again = [room.deliver(wish, delivery_id=name) for name in ("d-1", "d-2")]
    assert [one.status_code for one in (first, *again)] == [201, 200, 200]
    assert {one.json()["run"] for one in again} == {first.json()["run"]}
    assert len(room.audited) == 1
    other = room.deliver(comment(room.kind, "/turnout fix", comment_id=502))
    assert (other.status_code, len(await room.runs())) == (201, 2)


async def test_a_review_that_is_asked_for_again_is_the_same_though_the_branch_has_moved_on(
    room: Room,
) -> None:
    """The delivery is the same; what is reviewed is what was there first."""
    wish = comment(room.kind, "/turnout review", thread="pull")
    first = room.deliver(wish)
    for moved in (DIFF.replace(b"+b", b"+c"), b""):
        room.client.diff = moved
        again = room.deliver(wish)
        assert (first.status_code, again.status_code) == (201, 200)
        assert again.json() == first.json()


@pytest.mark.parametrize("by", [("eve", 9), ("mallory", 1)])
async def test_a_stranger_starts_nothing(room: Room, by: tuple[str, int]) -> None:
    """Whatever they write; the forge is told that all is well."""
    for wish in (comment(room.kind, "/turnout fix", by=by), labelled(room.kind, "turnout", by=by)):
        answer = room.deliver(wish)
        assert (answer.status_code, answer.json()["run"]) == (200, None)
        assert "may not start runs" in answer.json()["ignored"]
    assert await room.runs() == []


async def test_who_may_start_runs_is_a_setting(room: Room) -> None:
    """Writing may be too little."""
    room.starters = "maintain"
    assert room.deliver(comment(room.kind, "/turnout fix")).status_code == 200
    assert room.deliver(comment(room.kind, "/turnout fix", by=("max", 8))).status_code == 201


async def test_a_repository_that_is_not_listed_starts_nothing(room: Room) -> None:
    """The forge is not even asked who that is."""
    part, name = (
        ("repository", "full_name") if room.kind == "github" else ("project", "path_with_namespace")
    )
    answer = room.deliver(comment(room.kind, "/turnout fix").with_(part, **{name: "acme/other"}))
    assert (answer.status_code, answer.json()["run"]) == (200, None)
    assert room.client.asked == []


async def test_other_talk_is_ignored_with_a_reason(room: Room) -> None:
    """So that whoever sets the webhook up sees that it arrives."""
    answer = room.deliver(comment(room.kind, "thanks!"))
    assert (answer.status_code, answer.json()["run"]) == (200, None)
    assert answer.json()["ignored"]
    assert room.client.asked == []


async def test_a_run_becomes_a_draft_where_branches_may_be_pushed(room: Room) -> None:
    """A review never does, and no run where they may not."""
    room.book = replace(BOOK, access={})
    room.deliver(comment(room.kind, "/turnout fix"))
    room.book = replace(BOOK, access={"shop": RepositoryAccess(push=True)})
    room.deliver(comment(room.kind, "/turnout fix", comment_id=502))
    room.deliver(comment(room.kind, "/turnout review", thread="pull", comment_id=503))
    assert [run.order.publish for run in await room.runs()] == [None, "draft", None]


async def test_a_run_is_ordered_whether_or_not_it_can_be_nodded_at(room: Room) -> None:
    """The token may not grant it."""
    room.client.nods = False
    assert room.deliver(labelled(room.kind, "turnout")).status_code == 201
    assert len(await room.runs()) == 1


def refusal(answer: Any) -> tuple[int, str]:
    """Return the status and the code of a refusal."""
    return answer.status_code, answer.json()["error"]["code"]


async def test_what_is_not_signed_is_refused(room: Room) -> None:
    """Nothing of it is looked at, and no key stands in for the signature."""
    headers, body = signed(comment(room.kind, "/turnout fix"), "another", room.clock.now())
    assert refusal(room.send(headers, body)) == (401, "invalid_signature")
    assert refusal(room.send({}, body)) == (401, "invalid_signature")
    bearer = {"authorization": "Bearer boss"}
    assert refusal(room.send(bearer, body)) == (401, "invalid_signature")
    assert SECRET not in room.send({}, body).text
    room.variables.clear()
    assert refusal(room.deliver(comment(room.kind, "/turnout fix"))) == (401, "invalid_signature")
    assert await room.runs() == []
    assert room.client.asked == []


def test_a_forge_that_is_not_set_up_is_not_there(room: Room) -> None:
    """However it is signed."""
    answer = room.deliver(comment(room.kind, "/turnout fix"), name="other")
    assert refusal(answer) == (404, "not_found")


@pytest.mark.parametrize("wrong", [b"", b"payload=%7B%7D", b"[1]", b"\xff", b"[" * 5_000])
def test_a_signed_body_that_is_none_is_refused(room: Room, wrong: bytes) -> None:
    """Or ignored, where it is JSON that says nothing; never an error of ours."""
    delivery = comment(room.kind, "x")
    headers, _ = signed(delivery, SECRET, room.clock.now(), standard=False)
    if room.kind == "github":
        digest = hmac.digest(SECRET.encode(), wrong, "sha256").hex()
        headers["x-hub-signature-256"] = f"sha256={digest}"
    assert room.send(headers, wrong).status_code in {200, 400}


async def test_a_body_that_is_too_large_is_refused_before_it_is_checked(room: Room) -> None:
    """Anybody may send one."""
    assert room.send({}, b"x" * (2 * 2**20 + 1)).status_code == 413


async def test_a_forge_that_does_not_answer_is_to_deliver_again(room: Room) -> None:
    """503, and the next delivery of the same wish is taken."""
    room.client.failing = ForgeError("The forge hub cannot be reached.", passing=True)
    wish = comment(room.kind, "/turnout fix")
    assert refusal(room.deliver(wish)) == (503, "forge_unavailable")
    room.client.failing = None
    assert room.deliver(wish).status_code == 201


@pytest.mark.parametrize("key", ["gone", "red-viewer", "red-models"])
async def test_a_key_that_may_not_order_is_said_to_be_the_trouble(room: Room, key: str) -> None:
    """503: it is for whoever runs the service to mend."""
    room.key = key
    answer = room.deliver(comment(room.kind, "/turnout fix"))
    assert refusal(answer) == (503, "forge_key_unusable")
    assert "service.forges.hub.key" in answer.json()["error"]["message"]


@pytest.mark.parametrize("diff", [b"", b"\xff", b"x" * (2**20 + 1), b"Approve."])
async def test_a_change_that_cannot_be_reviewed_is_refused(room: Room, diff: bytes) -> None:
    """400, in a sentence."""
    room.client.diff = diff
    answer = room.deliver(comment(room.kind, "/turnout review", thread="pull"))
    assert refusal(answer) == (400, "invalid_request")
    assert "cannot be reviewed" in answer.json()["error"]["message"]


def test_the_document_says_that_the_route_takes_no_key(room: Room) -> None:
    """And every other route of the service does."""
    app = build_admin(
        AdminParts(
            authenticate=authenticate,
            policies=PolicyDesk(MemoryPoliciesStore(), CATALOG, FrozenClock()),
            explain=Explained(),
            shapes={},
            routers=(room.router(),),
        )
    )
    document = app.openapi()
    assert document["paths"]["/forges/{name}/webhook"]["post"]["security"] == []
    assert document["security"] == [{"key": []}]
    client = TestClient(app, raise_server_exceptions=False)
    assert refusal(client.post("/forges/hub/webhook", json={})) == (401, "invalid_signature")
    assert refusal(client.get("/forges/hub/webhook")) == (405, "method_not_allowed")
    assert refusal(client.get("/forges/..%2fpolicies")) == (401, "invalid_api_key")
    assert refusal(client.get("/policies")) == (401, "invalid_api_key")
