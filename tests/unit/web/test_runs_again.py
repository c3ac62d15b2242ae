"""Orders that are sent again, runs that are done again, and keys that are shut meanwhile."""

import time
from typing import Any

import pytest
from tests.unit.web.rooms import ASKED, BOOK, END, Service, memory_service

from turnout.core.ids import RunId
from turnout.core.service.repositories import RepositoryBook

ORDER = {"task": "Fix it.", "repo": "shop"}
ONCE = {"idempotency-key": "k-1"}


@pytest.fixture
def service() -> Service:
    """Return the routes on stores in memory."""
    return memory_service()


def refusal(answer: Any) -> tuple[int, str]:
    """Return the status and the code of a refusal."""
    return answer.status_code, answer.json()["error"]["code"]


async def ended(service: Service, **fields: Any) -> str:
    """Order a run as a member and let it end; return where it is."""
    run_id = service.ordered(**fields)
    await service.begun(run_id, *END)
    return f"/runs/{run_id}"


async def test_a_retry_takes_what_an_order_of_the_same_key_would(service: Service) -> None:
    """Who may not choose a policy does not get it by doing the run of another again."""
    path = await ended(service, policy="team")
    assert refusal(service.call("POST", f"{path}/retry", "red-approver")) == (
        403,
        "policy_not_granted",
    )
    assert service.call("POST", f"{path}/retry", "red-member").status_code == 201


@pytest.mark.parametrize(
    ("fields", "book", "param"),
    [
        ({}, RepositoryBook({}), "repo"),
        ({"publish": "branch"}, RepositoryBook({"shop": "/srv/git/shop"}), "publish"),
    ],
)
async def test_a_retry_of_what_the_service_no_longer_does_is_refused(
    service: Service, fields, book, param: str
) -> None:
    """Its repository has left the book since, or is no longer pushed to."""
    path = await ended(service, **fields)
    service.use(book)
    answer = service.call("POST", f"{path}/retry")
    assert refusal(answer) == (400, "invalid_request")
    assert answer.json()["error"]["param"] == param
    assert len(service.call("GET", "/runs").json()["runs"]) == 1


async def test_a_retry_carries_no_push_by_hand_along(service: Service) -> None:
    """What somebody has had pushed was a diff that they had read."""
    path = await ended(service)
    assert service.call("POST", f"{path}/publish", json={"publish": "branch"}).status_code == 200
    assert service.call("GET", path).json()["publish"] == "branch"
    assert service.call("POST", f"{path}/retry").json()["publish"] is None


async def test_a_retry_with_the_same_key_is_one_run(service: Service) -> None:
    """Sent again: 200 and the same run; of another run, or as an order: a conflict."""
    path, other = await ended(service), await ended(service)
    first = service.call("POST", f"{path}/retry", headers=ONCE)
    again = service.call("POST", f"{path}/retry", headers=ONCE)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    assert again.headers["location"] == first.headers["location"]
    for wrong in (
        service.call("POST", f"{other}/retry", headers=ONCE),
        service.call("POST", "/runs", json=ORDER, headers=ONCE),
    ):
        assert refusal(wrong) == (409, "idempotency_conflict")
    assert service.call("POST", f"{path}/retry").json()["id"] != first.json()["id"]


@pytest.mark.parametrize("retried", [False, True])
async def test_the_same_key_is_the_same_run_whatever_has_changed_since(
    service: Service, retried: bool
) -> None:
    """Its repository has left the book: the run that was ordered is there all the same."""
    path = f"{await ended(service)}/retry" if retried else "/runs"
    body = {} if retried else ORDER
    made = service.call("POST", path, json=body, headers=ONCE).json()["id"]
    service.use(RepositoryBook({}))
    again = service.call("POST", path, json=body, headers=ONCE)
    assert (again.status_code, again.json()["id"]) == (200, made)
    assert refusal(service.call("POST", path, json=body)) == (400, "invalid_request")
    service.use(BOOK)


async def test_a_stream_ends_once_its_key_is_shut() -> None:
    """Within two seconds it says so, and whoever comes back is refused; the run goes on."""
    service = memory_service()
    run_id: RunId = service.ordered()
    await service.begun(run_id)
    service.shut_after["red-viewer"] = 3
    began = time.monotonic()
    stream = service.call("GET", f"/runs/{run_id}/events", "red-viewer")
    assert stream.status_code == 200
    assert time.monotonic() - began < 8
    assert "run_started" in stream.text
    last = stream.text.strip().rpartition("\n\n")[2]
    assert last.startswith("event: error\n")
    assert '"code":"invalid_api_key"' in last
    assert refusal(service.call("GET", f"/runs/{run_id}/events", "red-viewer"))[0] == 401
    assert service.call("GET", f"/runs/{run_id}").json()["state"] == "running"


async def test_a_stream_says_nothing_new_once_its_key_is_shut() -> None:
    """Not even what comes before it is asked about the key again by itself."""
    service = memory_service()
    run_id: RunId = service.ordered()
    await service.begun(run_id, *[ASKED] * 20)
    service.shut_after["red-viewer"] = 8
    told = service.call("GET", f"/runs/{run_id}/events", "red-viewer").text
    assert 0 < told.count("event: approval_asked") < 10
    assert told.strip().rpartition("\n\n")[2].startswith("event: error\n")
