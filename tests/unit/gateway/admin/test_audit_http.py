"""Changes over HTTP are on record before they are answered, and read back by admins."""

from dataclasses import dataclass, field

import pytest
from fastapi import APIRouter, Request, Response
from starlette.testclient import TestClient
from tests.unit.gateway.admin.admin_app import CATALOG, Admin, Explained, authenticate

from turnout.core.govern.audit import Audited, AuditFilter, AuditLine, AuditPage
from turnout.errors import StoreError
from turnout.gateway.admin.app import AdminParts, build_admin
from turnout.gateway.admin.audit import audit_router, unchanged
from turnout.gateway.admin.keys import keys_router
from turnout.gateway.keys.desk import KeyDesk
from turnout.gateway.policy.desk import PolicyDesk
from turnout.testing.books import MemoryKeys
from turnout.testing.clock import FrozenClock
from turnout.testing.stores import MemoryPoliciesStore


@dataclass
class Book:
    """Changes in memory."""

    changes: list[Audited] = field(default_factory=list)
    broken: bool = False

    async def add(self, change: Audited) -> None:
        """Write a change down, unless it is broken."""
        if self.broken:
            raise StoreError("The disk is full.")
        self.changes.append(change)

    async def page(self, wanted: AuditFilter, *, before: int | None, limit: int) -> AuditPage:
        """Return what is wanted of one actor."""
        lines = [AuditLine(n, change) for n, change in enumerate(self.changes, 1)]
        found = [line for line in lines if wanted.actor in {None, line.change.actor}]
        return AuditPage(tuple(reversed(found))[:limit], None)


@pytest.fixture
def book() -> Book:
    """Return an empty one."""
    return Book()


def doors() -> APIRouter:
    """Return a route that makes something or finds it, and one that says what it has done."""
    router = APIRouter(prefix="/doors")

    @router.post("/{name}", status_code=201)
    async def make_door(name: str, response: Response) -> None:
        response.status_code = 200 if name == "old" else 201

    @router.post("/{name}/close")
    async def close_door(name: str, request: Request) -> None:
        if name == "old":
            unchanged(request)

    return router


@pytest.fixture
def admin(book: Book) -> Admin:
    """Return an application that puts changes there."""
    clock = FrozenClock()
    parts = AdminParts(
        authenticate=authenticate,
        policies=PolicyDesk(MemoryPoliciesStore(), CATALOG, clock),
        explain=Explained(),
        shapes={},
        routers=(keys_router(KeyDesk(MemoryKeys(), clock)), audit_router(book, clock), doors()),
        audit=book,
        clock=clock,
    )
    return Admin(TestClient(build_admin(parts), raise_server_exceptions=False), Explained())


def test_every_change_names_who_did_what_to_which(admin: Admin, book: Book) -> None:
    """What it was changed to as well, but for texts that people write."""
    policy = {"note": "tk-secret words", "policy": {"tools": {"mode": "dry_run"}}}
    assert admin.call("POST", "/keys", json={"name": "ci", "role": "member"}).status_code == 201
    assert admin.call("PATCH", "/keys/ci", json={"admin": True}).status_code == 200
    assert admin.call("PUT", "/policies/team", json=policy).status_code == 200
    assert admin.call("DELETE", "/keys/ci").status_code == 200
    assert [(c.actor, c.action, c.subject) for c in book.changes] == [
        ("boss", "create_key", "ci"),
        ("boss", "change_key", "ci"),
        ("boss", "put_policy", "team"),
        ("boss", "revoke_key", "ci"),
    ]
    assert [dict(c.detail) for c in book.changes[:2]] == [
        {"role": "member", "fields": "name"},
        {"admin": "true"},
    ]
    assert "secret" not in str(book.changes[2].detail)


def test_what_has_left_everything_as_it_was_is_no_change(admin: Admin, book: Book) -> None:
    """What was made before is not made again, and what was closed stays closed."""
    for name in ("old", "new"):
        for path in (f"/doors/{name}", f"/doors/{name}/close"):
            assert admin.call("POST", path).is_success
    assert [(c.action, c.subject) for c in book.changes] == [
        ("make_door", "new"),
        ("close_door", "new"),
    ]


def test_what_was_refused_or_only_asked_is_no_change(admin: Admin, book: Book) -> None:
    """Reading, a draft that is looked at, what nobody may do and what cannot be."""
    admin.call("GET", "/keys")
    assert admin.call("POST", "/policies/team/check", json={"policy": {}}).status_code == 200
    assert admin.call("POST", "/keys", "dev", json={"name": "ci"}).status_code == 403
    assert admin.call("POST", "/keys", json={"name": "!"}).status_code == 400
    assert admin.call("POST", "/keys", "nobody", json={"name": "ci"}).status_code == 401
    assert book.changes == []


def test_what_cannot_be_put_on_record_is_not_answered_as_done(admin: Admin, book: Book) -> None:
    """The caller learns that something is wrong, in the one error body."""
    book.broken = True
    answer = admin.call("POST", "/keys", json={"name": "ci"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "store_unavailable")


def test_admins_read_it_back(admin: Admin) -> None:
    """Others do not; a filter that is none is refused."""
    admin.call("POST", "/keys", json={"name": "ci"})
    (change,) = admin.call("GET", "/audit", params={"actor": "boss"}).json()["changes"]
    assert (change["action"], change["subject"], change["number"]) == ("create_key", "ci", 1)
    assert admin.call("GET", "/audit", params={"actor": "dev"}).json()["changes"] == []
    assert admin.call("GET", "/audit", "dev").status_code == 403
    assert admin.call("GET", "/audit", params={"who": "boss"}).status_code == 400
