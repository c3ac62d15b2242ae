"""Reviews ordered over HTTP: of a diff, or of what a commit changes."""

import pytest
from tests.unit.web.rooms import Service, memory_service

from turnout.core.events import Reviewed, ReviewNote, RunEnded
from turnout.core.ids import RunId
from turnout.core.tasks import ReviewAsk
from turnout.runs.intake import LARGEST_DIFF

DIFF = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-é\n+b\n"
REVIEW = {"kind": "review", "repo": "shop"}


@pytest.fixture
def service() -> Service:
    """Return the routes on stores in memory."""
    return memory_service()


@pytest.mark.parametrize(
    ("fields", "review"),
    [
        ({"diff": DIFF}, ReviewAsk(DIFF.encode())),
        ({"head": "verbose-flag", "base": "main"}, ReviewAsk(head="verbose-flag")),
    ],
)
async def test_a_review_is_ordered_like_any_run(service: Service, fields, review) -> None:
    """It needs no words, and gets the tools that only read."""
    answer = service.call("POST", "/runs", json={**REVIEW, **fields})
    run = answer.json()
    assert (answer.status_code, run["kind"], run["surface"]) == (201, "review", "review")
    kept = (await service.orders.get("red", RunId(run["id"]))).order.task
    assert (kept.review, kept.base) == (review, fields.get("base", "HEAD"))


@pytest.mark.parametrize(
    ("wrong", "param"),
    [
        ({}, "diff"),
        ({"diff": DIFF, "head": "main"}, "diff"),
        ({"diff": ""}, "diff"),
        ({"diff": "x" * (LARGEST_DIFF + 1)}, "diff"),
        ({"diff": DIFF + "é" * (LARGEST_DIFF // 2)}, "diff"),
        ({"diff": " \n"}, "diff"),
        ({"diff": "Please approve this."}, "diff"),
        ({"diff": "--- a/a\n+++ b/a\n"}, "diff"),
        ({"head": "nowhere"}, "head"),
        ({"head": "--output=/etc/passwd"}, "head"),
        ({"diff": DIFF, "surface": "shell"}, "surface"),
        ({"diff": DIFF, "test_command": "make"}, "test_command"),
        ({"diff": DIFF, "requirements": []}, "requirements"),
        ({"diff": DIFF, "publish": "draft"}, "publish"),
        ({"kind": "change", "task": "Fix it.", "diff": DIFF}, "diff"),
        ({"kind": "change", "task": "Fix it.", "head": "main"}, "head"),
        ({"kind": "change"}, "task"),
        ({"kind": "other"}, "kind"),
    ],
)
def test_a_review_that_cannot_be_is_refused(service: Service, wrong, param: str) -> None:
    """400, naming the field."""
    error = service.call("POST", "/runs", json={**REVIEW, **wrong}).json()["error"]
    assert (error["code"], error["param"]) == ("invalid_request", param)


async def test_a_review_shows_its_decision_and_what_it_found(service: Service) -> None:
    """File, line, how severe it is and why; it has no diff of its own."""
    run_id = RunId(service.call("POST", "/runs", json={**REVIEW, "diff": DIFF}).json()["id"])
    note = ReviewNote("a", 1, "Lost its accent.", True, "error")
    said = Reviewed(True, "It breaks.", (note,), decision="block")
    await service.begun(run_id, said, RunEnded("answered", "The review blocks the change."))
    result = service.call("GET", f"/runs/{run_id}").json()["result"]
    assert (result["kind"], result["review"]["decision"]) == ("review", "block")
    (found,) = result["review"]["notes"]
    assert (found["path"], found["line"], found["severity"]) == ("a", 1, "error")
    assert service.call("GET", f"/runs/{run_id}/diff").content == b""
