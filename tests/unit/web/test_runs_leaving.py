"""What callers ask to leave the service, over HTTP: notifications, branches, trajectories."""

from dataclasses import replace

import pytest
from tests.samples import NOON
from tests.unit.web.rooms import END, Service, memory_service

from turnout.core.ids import RunId
from turnout.core.service.publications import Publication

ORDER = {"task": "Fix it.", "repo": "shop"}
HOOK = "https://hooks.example.org:8443/in/a-secret-of-its-own"


@pytest.fixture
def service() -> Service:
    """Return the routes on stores in memory."""
    return memory_service()


def test_an_order_says_who_is_told_and_what_is_published(service: Service) -> None:
    """The path of an address may be a secret, and is shown to nobody."""
    wanted = {**ORDER, "notify": HOOK, "publish": "draft"}
    run = service.call("POST", "/runs", json=wanted).json()
    assert (run["notify"], run["publish"]) == ("https://hooks.example.org:8443", "draft")
    listed = service.call("GET", "/runs").json()["runs"]
    assert [one["notify"] for one in listed] == [run["notify"]]
    shown = service.call("GET", f"/runs/{run['id']}")
    assert shown.json()["publication"] is None
    assert "a-secret-of-its-own" not in shown.text


@pytest.mark.parametrize(
    ("wrong", "param"),
    [
        ({"notify": "http://hooks.example.org"}, "notify"),
        ({"notify": ""}, "notify"),
        ({"publish": "merge"}, "publish"),
        ({"publish": "branch", "repo": "https://git.example.org/a/b"}, "publish"),
        ({"publish": "draft", "repo": "docs"}, "publish"),
        ({"publish": "branch", "kind": "review", "diff": "d"}, "publish"),
    ],
)
def test_what_the_service_does_not_do_is_refused(service: Service, wrong, param) -> None:
    """With the field, before anything is kept."""
    answer = service.call("POST", "/runs", json={**ORDER, **wrong})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
    assert service.call("GET", "/runs").json()["runs"] == []


def test_a_run_shows_how_far_its_publication_is(service: Service) -> None:
    """What was pushed, and what is tried again when."""
    run_id = service.ordered(publish="branch")
    kept = Publication(run_id, "red", NOON, detail="Nobody answers.", tries=1)
    service.published[run_id] = kept
    shown = service.call("GET", f"/runs/{run_id}").json()["publication"]
    assert shown == {
        "state": "due",
        "branch": None,
        "commit": None,
        "link": None,
        "detail": "Nobody answers.",
        "tries": 1,
        "next_try": "2026-01-01T12:00:00Z",
    }
    done = replace(kept, state="done", branch="turnout/x", commit="c", link="https://x", detail="")
    service.published[run_id] = done
    shown = service.call("GET", f"/runs/{run_id}").json()["publication"]
    assert (shown["state"], shown["branch"], shown["link"]) == ("done", "turnout/x", "https://x")
    assert shown["next_try"] is None


async def test_a_run_is_had_as_one_document_once_somebody_has_begun_it(service: Service) -> None:
    """In a format of the reader's choice, with a name for its file."""
    run_id: RunId = service.ordered()
    early = service.call("GET", f"/runs/{run_id}/trajectory")
    assert (early.status_code, early.json()["error"]["code"]) == (409, "not_begun_yet")
    await service.begun(run_id, *END)
    told = service.call("GET", f"/runs/{run_id}/trajectory")
    assert told.headers["content-type"] == "application/json"
    assert told.headers["content-disposition"] == f'attachment; filename="{run_id}.atif.json"'
    assert (told.json()["schema_version"], told.json()["session_id"]) == ("ATIF-v1.7", run_id)
    own = service.call("GET", f"/runs/{run_id}/trajectory?format=turnout").json()
    assert own["entries"][-1]["event"]["type"] == "run_ended"
    odd = service.call("GET", f"/runs/{run_id}/trajectory?format=xml")
    assert (odd.status_code, odd.json()["error"]["param"]) == (400, "format")
    other = service.call("GET", f"/runs/{run_id}/trajectory", key="blue-approver")
    assert other.status_code == 404
