"""`/keys`: made, read, changed and shut over HTTP."""

import pytest
from starlette.testclient import TestClient
from tests.unit.gateway.admin.admin_app import CATALOG, Admin, Explained, authenticate

from turnout.gateway.admin.app import AdminParts, build_admin
from turnout.gateway.admin.keys import keys_router
from turnout.gateway.keys.desk import KeyDesk
from turnout.gateway.policy.desk import PolicyDesk
from turnout.testing.books import MemoryKeys
from turnout.testing.clock import FrozenClock
from turnout.testing.stores import MemoryPoliciesStore


@pytest.fixture
def admin() -> Admin:
    """Return an application without a key of its own store."""
    clock = FrozenClock()
    parts = AdminParts(
        authenticate=authenticate,
        policies=PolicyDesk(MemoryPoliciesStore(), CATALOG, clock),
        explain=Explained(),
        shapes={},
        routers=(keys_router(KeyDesk(MemoryKeys(), clock)),),
    )
    return Admin(TestClient(build_admin(parts)), Explained())


def test_a_key_is_shown_once_and_changed_in_part(admin: Admin) -> None:
    """A limit that is null goes; what is left out stays."""
    made = admin.call("POST", "/keys", json={"name": "ci", "concurrency": 4})
    assert made.status_code == 201
    assert made.json()["key"].startswith("tk-")
    changed = admin.call("PATCH", "/keys/ci", json={"requests_per_minute": 60}).json()
    assert (changed["requests_per_minute"], changed["concurrency"]) == (60, 4)
    freed = admin.call("PATCH", "/keys/ci", json={"concurrency": None}).json()
    assert (freed["requests_per_minute"], freed["concurrency"]) == (60, None)
    assert "key" not in admin.call("GET", "/keys/ci").json()


def test_a_key_asks_models_and_no_more_until_it_has_another_role(admin: Admin) -> None:
    """What was made for models alone does not come to start runs."""
    assert admin.call("POST", "/keys", json={"name": "ci"}).json()["role"] == "models"
    assert admin.call("PATCH", "/keys/ci", json={"role": "member"}).json()["role"] == "member"
    assert admin.call("PATCH", "/keys/ci", json={"role": "root"}).status_code == 400


def test_a_key_ends_at_the_moment_that_was_said(admin: Admin) -> None:
    """With its offset; a moment without one is none."""
    wanted = {"name": "ci", "expires_at": "2999-01-01T00:00:00+02:00"}
    made = admin.call("POST", "/keys", json=wanted)
    assert (made.status_code, made.json()["expires_at"]) == (201, "2998-12-31T22:00:00Z")
    bare = admin.call("PATCH", "/keys/ci", json={"expires_at": "2999-01-01T00:00:00"})
    assert bare.status_code == 400


def test_a_revoked_key_stays_on_the_list(admin: Admin) -> None:
    """Its name is not given again."""
    admin.call("POST", "/keys", json={"name": "ci"})
    assert admin.call("DELETE", "/keys/ci").json()["state"] == "revoked"
    (listed,) = admin.call("GET", "/keys").json()["keys"]
    assert (listed["name"], listed["state"]) == ("ci", "revoked")
    assert admin.call("POST", "/keys", json={"name": "ci"}).status_code == 409


def test_a_revoked_key_is_not_changed(admin: Admin) -> None:
    """A conflict; to revoke it once more is none."""
    admin.call("POST", "/keys", json={"name": "ci"})
    admin.call("DELETE", "/keys/ci")
    assert admin.call("PATCH", "/keys/ci", json={"admin": True}).status_code == 409
    assert admin.call("DELETE", "/keys/ci").status_code < 300
    (key,) = [key for key in admin.call("GET", "/keys").json()["keys"] if key["name"] == "ci"]
    assert not key["admin"]


def test_a_key_without_rights_reads_itself_alone(admin: Admin) -> None:
    """On the list, by its name, and nothing of the others."""
    for name in ("dev", "ci"):
        admin.call("POST", "/keys", json={"name": name})
    listed = admin.call("GET", "/keys", key="dev").json()["keys"]
    assert [one["name"] for one in listed] == ["dev"]
    assert admin.call("GET", "/keys/dev", key="dev").json()["name"] == "dev"
    for name in ("ci", "nobody"):
        refused = admin.call("GET", f"/keys/{name}", key="dev")
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "admin_required")


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/keys"), ("PATCH", "/keys/dev"), ("DELETE", "/keys/dev")]
)
def test_a_key_without_rights_changes_nothing(admin: Admin, method: str, path: str) -> None:
    """Not even itself."""
    body = {"json": {"name": "more"} if method == "POST" else {}} if method != "DELETE" else {}
    assert admin.call(method, path, key="dev", **body).status_code == 403


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "x", "concurrency": 0},
        {"name": "x", "concurrency": True},
        {"name": "x", "concurrency": "4"},
        {"name": "x", "admin": "yes"},
        {"nam": "x"},
    ],
)
def test_a_wrong_key_is_refused(admin: Admin, wrong: dict[str, object]) -> None:
    """400, in the one error shape."""
    refused = admin.call("POST", "/keys", json=wrong)
    assert refused.status_code == 400
    assert refused.json()["error"]["param"]
