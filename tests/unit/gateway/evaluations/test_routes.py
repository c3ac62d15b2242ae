"""`/evaluations`: an admin key applies, looks at and takes back; any key reads what counts."""

from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.unit.gateway.admin.admin_app import Admin, Explained, authenticate
from tests.unit.gateway.admin.test_audit_http import Book
from tests.unit.gateway.evaluations.test_preview import CATALOG, DEAR, Room

from turnout.gateway.admin.app import AdminParts, build_admin
from turnout.gateway.evaluations.routes import evaluations_router
from turnout.gateway.policy.desk import PolicyDesk
from turnout.testing.clock import FrozenClock
from turnout.testing.stores import MemoryPoliciesStore

BODY: dict[str, Any] = {
    "id": "3f2a91c04d7b",
    "task": "coding",
    "mode": "hidden",
    "at": "2026-01-01T00:00:00+00:00",
    "source": "bugs.results.jsonl",
    "scores": [
        {"subject": "cheap", "solved": 10, "tried": 40},
        {"subject": "dear", "solved": 30, "tried": 40},
    ],
}


@pytest.fixture
def book() -> Book:
    """Return where changes are put on record."""
    return Book()


@pytest.fixture
def admin(book: Book) -> Admin:
    """Return an application to which nothing was applied."""
    parts = AdminParts(
        authenticate=authenticate,
        policies=PolicyDesk(MemoryPoliciesStore(), CATALOG, FrozenClock()),
        explain=Explained(),
        shapes={},
        routers=(evaluations_router(Room().desk),),
        audit=book,
        clock=FrozenClock(),
    )
    return Admin(TestClient(build_admin(parts)), Explained())


def test_an_evaluation_is_looked_at_applied_and_taken_back(admin: Admin, book: Book) -> None:
    """Only what changes something is on record, with who did it."""
    seen = admin.call("POST", "/evaluations/preview", json=BODY).json()
    (quality, *_) = seen["routes"]
    assert (quality["objective"], quality["after"], quality["changes"]) == (
        "quality",
        DEAR.id,
        True,
    )
    assert admin.call("GET", "/evaluations").json() == {"evaluations": [], "counting": []}
    first, again = (admin.call("POST", "/evaluations", json=BODY) for _ in range(2))
    assert (first.status_code, first.json()["changed"], again.json()["changed"]) == (
        200,
        True,
        False,
    )
    listed = admin.call("GET", "/evaluations", key="plain").json()
    assert [each["author"] for each in listed["evaluations"]] == ["boss"]
    best = listed["counting"][1]
    assert (best["subject"], best["value"], best["samples"]) == ("dear", 0.75, 40)
    assert best["source"] == "evaluation 3f2a91c04d7b, hidden tests: bugs.results.jsonl"
    undo = f"/evaluations/{BODY['id']}"
    assert admin.call("GET", f"{undo}/undo").json()["counting"] == []
    assert admin.call("DELETE", undo).status_code == 200
    assert admin.call("DELETE", undo).status_code == 404
    assert [(each.actor, each.action, each.subject) for each in book.changes] == [
        ("boss", "apply_evaluation", BODY["id"]),
        ("boss", "undo_evaluation", BODY["id"]),
    ]


def test_only_an_admin_key_changes_what_everybody_is_routed_by(admin: Admin) -> None:
    """Or sees what each policy would make of it."""
    for method, path in (
        ("POST", "/evaluations"),
        ("POST", "/evaluations/preview"),
        ("GET", "/evaluations/x/undo"),
        ("DELETE", "/evaluations/x"),
    ):
        body = {"json": BODY} if method == "POST" else {}
        assert admin.call(method, path, key="dev", **body).status_code == 403, path
    assert admin.call("GET", "/evaluations").json()["evaluations"] == []


WRONG: tuple[dict[str, Any], ...] = (
    {"id": "../x"},
    {"id": ""},
    {"task": "cooking"},
    {"mode": "blind"},
    {"at": "2026-01-01T00:00:00"},
    {"source": "x" * 501},
    {"scores": []},
    {"scores": [{"subject": "m", "solved": 5, "tried": 4}]},
    {"scores": [{"subject": "m", "solved": 0, "tried": 0}]},
    {"scores": [{"subject": "m", "solved": 1.0, "tried": 4}]},
    {"scores": [{"subject": "m", "solved": 1, "tried": 4}] * 2},
    {"scores": [{"subject": f"m{n}", "solved": 1, "tried": 4} for n in range(201)]},
    {"more": 1},
)


def test_what_is_no_evaluation_is_refused(admin: Admin) -> None:
    """With a message; nothing is applied."""
    for wrong in WRONG:
        answer = admin.call("POST", "/evaluations", json={**BODY, **wrong})
        assert answer.status_code == 400, wrong
        assert answer.json()["error"]["message"]
    assert admin.call("GET", "/evaluations").json()["evaluations"] == []
