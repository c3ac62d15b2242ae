"""Evaluations in the console: their reports, and routing that goes by them."""

from pathlib import Path

import pytest
from pydantic import TypeAdapter
from tests.unit.web.console.govern.governed import HOSTILE, Governed
from tests.unit.web.console.seen import words

from turnout.core.ids import RunId
from turnout.core.json import ascii_json
from turnout.evals.trials.model import KindUsage, Trial


def trial(task: str, model: str, *, solved: bool) -> Trial:
    """Return a trial that one model worked on alone."""
    return Trial(
        instance_id=task,
        instance_digest=f"d-{task}",
        grade="resolved" if solved else "unresolved",
        arm=f"model:{model}",
        arm_digest=f"{model}-0123456789abcdef",
        run_id=RunId(f"run-{model}-{task}"),
        detail=HOSTILE,
        title=HOSTILE,
        usage=(KindUsage("act", model, 1, 10, 2),),
        diff=f"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+{HOSTILE}\n",
    )


@pytest.fixture
def governed(tmp_path: Path):
    """Return a console with the results of two models, of which the dear one is better."""
    trials = [trial(f"t{n}", "big", solved=n < 19) for n in range(20)]
    trials += [trial(f"t{n}", "small", solved=n < 2) for n in range(20)]
    rows = [TypeAdapter(Trial).dump_python(each, mode="json") for each in trials]
    text = "".join(f"{ascii_json(row)}\n" for row in rows)
    (tmp_path / "bugs.results.jsonl").write_text(text)
    (tmp_path / "notes.txt").write_text("none")
    (tmp_path / "broken.jsonl").write_text("x\n")
    return Governed(results=tmp_path)


def test_reports_of_results_are_shown_inside_the_console(governed) -> None:
    """Without a style of their own in the page, and hostile text of results is text."""
    boss = governed.person()
    listed = words(boss.get("/evaluations"))
    assert "bugs.results.jsonl" in listed
    assert "notes.txt" not in listed
    page = boss.get("/evaluations/report?name=bugs.results.jsonl")
    assert "model:big" in words(page)
    assert 'class="report"' in page.text
    assert "<script>alert" not in page.text
    assert "\u202e" not in page.text
    assert "style=" not in page.text
    assert "<style" not in page.text
    assert boss.get("/evaluations/report.css").headers["content-type"].startswith("text/css")
    assert "/console/runs/run-big-t1?project=eval%3Abig-01234567" in page.text


def test_only_listed_results_are_read(governed) -> None:
    """No path leads out of the folder, and admins alone look into it."""
    boss = governed.person()
    for name in ("../bugs.results.jsonl", "notes.txt", "gone.jsonl", "/etc/passwd", ""):
        assert boss.get(f"/evaluations/report?name={name}").status_code == 404
    assert boss.get("/evaluations/report?name=broken.jsonl").status_code == 400
    member = governed.person("red-member")
    assert "bugs.results.jsonl" not in words(member.get("/evaluations"))
    assert member.get("/evaluations/report?name=bugs.results.jsonl").status_code == 403
    assert member.send("/evaluations/apply", name="bugs.results.jsonl").status_code == 403


def identity(page) -> str:
    """Return which evaluation a preview is of."""
    return page.text.split('name="id" value="')[1].split('"')[0]


def test_an_evaluation_is_previewed_applied_and_taken_back(governed) -> None:
    """Who would serve before and after is seen first; both changes are on record."""
    boss, asked = governed.person(), {"name": "bugs.results.jsonl", "task": "coding", "mode": ""}
    seen = boss.send("/evaluations/preview", **asked)
    assert "big: 19 of 20" in words(seen)
    assert "quality coding" in words(seen)
    assert "p/big changes" in words(seen)
    assert governed.changes == []
    stale = boss.send("/evaluations/apply", **asked, id="other")
    assert stale.status_code == 400
    assert boss.send("/evaluations/apply", **asked, id=identity(seen)).status_code == 303
    boss.send("/evaluations/apply", **asked, id=identity(seen))
    assert "big: 19 of 20" in words(governed.person("red-viewer").get("/evaluations"))
    decided = boss.send(
        "/playground/explain", prompt="x", optimize="quality", task="coding", max_tokens="9"
    )
    assert "p/big: the highest known quality for coding" in words(decided)
    back = boss.get(f"/evaluations/undo?id={identity(seen)}")
    assert "Take back evaluation" in words(back)
    boss.send("/evaluations/undo", id=identity(seen))
    assert "No evaluation is applied" in words(boss.get("/evaluations"))
    assert [action for _, action, _ in governed.changes] == ["apply_evaluation", "undo_evaluation"]
    assert boss.get("/evaluations/undo?id=gone").status_code == 404


def test_results_that_say_nothing_are_refused(governed) -> None:
    """A kind of tests that is not there, or no kind of requests."""
    boss = governed.person()
    asked = {"name": "bugs.results.jsonl", "task": "coding"}
    assert boss.send("/evaluations/preview", **asked, mode="visible").status_code == 400
    assert boss.send("/evaluations/preview", **{**asked, "task": "x"}).status_code == 400


def test_a_console_without_results_says_where_they_go() -> None:
    """A folder that is not there is an empty one."""
    assert "/nowhere" in words(Governed().person().get("/evaluations"))
