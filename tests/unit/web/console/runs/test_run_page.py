"""The page of one run: what is on top, its story, and what is done from it."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.unit.web.console.runs.told import DIFF, END, HOSTILE, PATCH, SEEN, step
from tests.unit.web.console.seen import Console, words
from tests.unit.web.rooms import ASKED, now

from turnout.core.events import (
    ApprovalGiven,
    Entry,
    HistoryCondensed,
    Notice,
    PatchMade,
    PlanMade,
    RunEnded,
    StepStarted,
    TestsRan,
    ToolCallDone,
    ToolCallIntended,
    WorkspaceReady,
)
from turnout.core.ids import RequestId, RunId
from turnout.core.receipts import Attempt, Candidate, Decision, Receipt
from turnout.core.runs import TestReport
from turnout.core.service.publications import Publication
from turnout.core.tools import ToolResult
from turnout.core.usage import Usage
from turnout.web.console.runs.story import Story

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
BEFORE = TestReport("pytest -q", 1, ("t::a",), ("t::b",), 2.0, HOSTILE)


async def test_the_verdict_is_on_top() -> None:
    """With the three things that it rests on, and why."""
    console = Console()
    run_id = await console.service.order()
    await console.service.begun(run_id, TestsRan("before", BEFORE), *step(1), *END)
    said = words(console.person("red-viewer").get(f"/runs/{run_id}"))
    top = said[: said.index("Timeline")]
    assert "Fix it. resolved" in top
    assert "Failed before yes Passes after yes Tests untouched yes" in top
    assert f"Why It passes now. {SEEN}" in top
    assert f"Explanation The reason was this. {SEEN}" in top
    assert "Retry" not in top


async def test_every_step_is_in_the_timeline() -> None:
    """What a model was asked and answered, why it was chosen, and what its tools did."""
    console = Console()
    run_id = await console.service.order()
    await console.service.begun(
        run_id,
        WorkspaceReady("bubblewrap", "pytest -q", ("pytest",), 1.2),
        TestsRan("before", BEFORE),
        PlanMade("1. Look\n2. Mend", ("Look", "Mend")),
        *step(1),
        *step(2, HOSTILE, is_error=True, elided_chars=7),
        HistoryCondensed("main", 1, "What was said."),
        Notice(HOSTILE, "warning"),
        *END,
    )
    page = console.person().get(f"/runs/{run_id}")
    said = words(page)
    for line in (
        "Workspace ready bubblewrap · 1.2 s",
        "Tests before 1 passed · 1 failed · 2 s",
        "Plan 2 items",
        "Step 1 · act for latency",
        "qwen act · 1,000 tokens in (300 cached) · 50 out · $0.0012 · 0.9 s",
        "The quickest above the floor of quality.",
        "run_command error truncated 0.3 s",
        '{"command": "ls"}',
        "Conversation condensed through step 1 condensed",
        SEEN,
        "Patch 2 files · +3 −1",
        "Ended: answered",
    ):
        assert " ".join(line.split()) in said, line
    assert "under way" not in said
    assert not {"\u202e", "\x1b", "\u200b"} & set(page.text)
    assert "<script>alert" not in page.text


async def test_what_has_no_answer_yet_is_under_way() -> None:
    """And given up once the run has ended."""
    console = Console()
    run_id = await console.service.order()
    run = await console.service.begun(run_id, *step(1)[:2])
    assert "Model call under way act" in words(console.person().get(f"/runs/{run_id}"))
    end = RunEnded("failed", "It broke.")
    await console.service.records.append(run_id, run.epoch, end, now())
    said = words(console.person().get(f"/runs/{run_id}"))
    assert "Model call no answer" in said
    assert "under way" not in said


async def test_a_long_story_comes_in_parts() -> None:
    """Its beginning and its end at once, each row of what is between on demand, once."""
    console = Console()
    run_id = await console.service.order()
    await console.service.begun(run_id, *(e for n in range(1, 301) for e in step(n)), *END)
    person = console.person()
    page = person.get(f"/runs/{run_id}").text
    ids = ids_of(page)
    assert len(ids) < 200
    while 'class="gap"' in page:
        at = page.index('hx-get="/console', page.index('class="gap"')) + len('hx-get="/console')
        page = person.part(page[at : page.index('"', at)].replace("&amp;", "&")).text
        ids += ids_of(page)
    assert len(ids) == len(set(ids)) == 1 + 300 * 3 + len(END)


def ids_of(page: str) -> list[str]:
    """Return the ids of the rows of a page."""
    return [part.partition('"')[0] for part in page.split('<li id="')[1:]]


async def test_an_entry_is_shown_whole_on_demand() -> None:
    """The reasons of a model call with its candidates, arguments by name, and texts to take."""
    console = Console()
    run_id = await console.service.order()
    await console.service.begun(run_id, *step(1, f"{HOSTILE}\n" + "x" * 1_000_000))
    console.receipts[RequestId("req-1")] = receipt()
    person = console.person()
    asked, call, result = (words(person.part(f"/runs/{run_id}/entries/{n}")) for n in (4, 5, 6))
    assert "Why this model The quickest above the floor of quality." in asked
    assert "near/qwen answered 0.5 quick" in asked
    assert "repaired tool arguments" in asked
    assert f"Reasoning take it whole Hm. Answer take it whole {SEEN}".rstrip() in asked
    assert "command: ls" in call
    assert SEEN in result
    assert "more characters are not shown here." in result
    assert len(result) < 20_000
    raw = person.get(f"/runs/{run_id}/entries/6/raw/0")
    assert raw.headers["content-disposition"].startswith("attachment")
    assert raw.text == f"{HOSTILE}\n" + "x" * 1_000_000
    assert "Entry 4" in words(person.get(f"/runs/{run_id}/entries/4"))


def receipt() -> Receipt:
    """Return what the gateway kept of a call that it had to mend."""
    candidate = Candidate("near/qwen", 0.5, None, "quick")
    decision = Decision(
        "latency", "coding", "request", ("near/qwen",), (candidate,), False, 3, "Quick."
    )
    return Receipt(
        request_id=RequestId("req-1"),
        at=now(),
        session=None,
        key="red-member",
        status="ok",
        http_status=200,
        error_code=None,
        asked_model="auto",
        call_kind="act",
        decision=decision,
        routing=None,
        attempts=(Attempt("near/qwen", 200, None, 900),),
        usage=Usage(),
        cost_micros=None,
        latency_ms=900,
        ttft_ms=None,
        tools_declared=(),
        tools_called=(),
        repairs=("tool arguments",),
    )


@pytest.mark.parametrize(
    "path",
    [
        "/entries/99",
        "/entries/0",
        "/entries/x",
        "/entries/²",
        "/entries/2/raw/9",
        "/entries/2/raw/-1",
        "/diff?file=7",
        "/timeline?seen=x",
    ],
)
async def test_what_is_not_there_is_told_so(path: str) -> None:
    """By status, on a page."""
    console = Console()
    run_id = await console.service.order()
    await console.service.begun(run_id, *END)
    assert console.person().get(f"/runs/{run_id}{path}").status_code in {400, 404}


@pytest.mark.parametrize(
    "path",
    ["", "/timeline", "/live", "/entries/1", "/entries/1/raw/0", "/diff", "/patch", "/trajectory"],
)
async def test_nobody_learns_of_runs_of_another_project(path: str) -> None:
    """They are not there; nor is a run that never was."""
    console = Console()
    run_id = await console.service.order()
    await console.service.begun(run_id, *END)
    blue = console.person("blue-approver")
    assert blue.get(f"/runs/{run_id}{path}").status_code == 404
    assert blue.get(f"/runs/run-{'0' * 12}{path}").status_code == 404


async def test_a_call_that_waits_is_decided_on_with_a_comment() -> None:
    """By who may, for the call that was looked at, once; the answer is on record."""
    console = Console()
    run_id = await console.service.order()
    await console.service.waiting(run_id)
    assert "It takes a key of the role" in words(
        console.person("red-member").get(f"/runs/{run_id}")
    )
    person = console.person()
    assert "Waits for approval: run_command" in words(person.get(f"/runs/{run_id}"))
    other = person.send(f"/runs/{run_id}/approve", call_id="call-2")
    assert other.status_code == 409
    sent = person.send(f"/runs/{run_id}/reject", call_id=ASKED.call.id, note="Not that.")
    assert sent.headers["location"] == f"/console/runs/{run_id}#top"
    (given,) = (await console.service.desk.entries("red", run_id))[2:]
    assert (given.event.allowed, given.event.by, given.event.note) == (
        False,
        "red-approver",
        "Not that.",
    )
    assert person.send(f"/runs/{run_id}/approve", call_id=ASKED.call.id).status_code == 409
    (change,) = console.audit.kept
    assert (change.action, change.detail) == (
        "reject_call",
        {"call_id": ASKED.call.id, "tool": "run_command"},
    )
    late = person.send(f"/runs/{run_id}/reject", call_id=ASKED.call.id, note="x" * 2_001)
    assert late.status_code == 400


@pytest.mark.parametrize("decision", ["approve", "reject"])
async def test_a_decision_names_the_call_that_was_looked_at(decision: str) -> None:
    """Without one it is about whichever call waits by then, which nobody has seen."""
    console = Console()
    run_id = await console.service.order()
    await console.service.waiting(run_id)
    sent = console.person().send(f"/runs/{run_id}/{decision}")
    assert (sent.status_code, "names no call" in words(sent)) == (400, True)
    assert (await console.service.desk.get("red", run_id)).state == "waiting"
    assert console.audit.kept == []


async def test_waiting_for_a_person_is_told_apart_from_the_work() -> None:
    """Of the duration, and of what went wrong: a call that was refused is no error."""
    console = Console()
    run_id = await console.service.order()
    await console.service.begun(run_id, StepStarted(2, "act", "latency"))
    story = Story()
    (begun, *_) = await console.service.desk.entries("red", run_id)
    story.add(begun)
    call, second = ASKED.call, timedelta(seconds=1)
    refused = ToolResult(call.id, "It was refused.", is_error=True)
    events = (
        ToolCallIntended(2, call),
        ASKED,
        ApprovalGiven(2, call.id, allowed=False, by="red-approver"),
        ToolCallDone(2, refused, 0.1),
        ToolCallIntended(3, call),
        ToolCallDone(3, refused, 0.1),
        replace(ASKED, step=4),
        RunEnded("cancelled", "Cancelled by boss."),
    )
    for number, event in enumerate(events, 2):
        story.add(Entry(run_id, number, NOON + number * 60 * second, event))
    marks = [row.marks for row in story.rows if row.kind == "tool"]
    assert marks == [("refused",), ("error",)]
    assert story.waited(NOON + 3_600 * second) == 120
    await console.service.waiting(run_id)
    console.clock.at = datetime.now(UTC) + timedelta(minutes=4)
    assert "of which 4 min" in words(console.person().get(f"/runs/{run_id}"))


async def test_a_run_is_cancelled_and_ordered_again() -> None:
    """Each once, and each on record."""
    console = Console()
    run_id = await console.service.order()
    person = console.person("red-member")
    assert person.send(f"/runs/{run_id}/retry").status_code == 409
    gone = person.send(f"/runs/{run_id}/cancel", back="/runs")
    assert gone.headers["location"] == f"/console/runs#row-{run_id}"
    person.send(f"/runs/{run_id}/cancel")
    again = person.send(f"/runs/{run_id}/retry").headers["location"]
    run = await console.service.desk.get("red", RunId(again.rpartition("/")[2]))
    assert run.order.retry_of == run_id
    cancelled, retried = console.audit.kept
    assert (cancelled.action, retried.action) == ("cancel_run", "retry_run")
    assert (retried.subject, retried.detail) == (run_id, {"run": run.run_id})


async def test_a_run_that_is_to_be_cancelled_is_asked_about_first() -> None:
    """The page before says what it is; the list that it was chosen from stays as it was."""
    console = Console()
    run_id = await console.service.order(task="Mend the parser.")
    person = console.person("red-member")
    kept = "/runs?state=queued&words=mend&cursor=9"
    assert f"/console/runs/{run_id}/cancel?" in person.get(kept).text
    asked = person.get(f"/runs/{run_id}/cancel", params={"back": kept})
    assert "Cancel this run? Mend the parser." in words(asked)
    assert (await console.service.desk.get("red", run_id)).state == "queued"
    done = person.send(f"/runs/{run_id}/cancel", back=kept)
    assert done.headers["location"] == f"/console{kept}#row-{run_id}"
    assert "Cancelled by red-member" in words(person.get(f"/runs/{run_id}"))
    assert "nothing to cancel" in words(person.get(f"/runs/{run_id}/cancel"))
    assert console.person("red-viewer").get(f"/runs/{run_id}/cancel").status_code == 403


@pytest.mark.parametrize("back", ["//evil.example/runs", "/keys", "/runs/x", "list", "/runs?a=b"])
async def test_a_cancellation_leads_to_no_other_page(back: str) -> None:
    """Whatever a form says: to the list or to the run."""
    console = Console()
    run_id = await console.service.order()
    done = console.person("red-member").send(f"/runs/{run_id}/cancel", back=back)
    to_run, to_list = f"/console/runs/{run_id}", f"/console/runs#row-{run_id}"
    assert done.headers["location"] == (to_list if back == "/runs?a=b" else to_run)


async def test_a_retry_publishes_only_what_the_order_asks_for() -> None:
    """A push by hand was a decision on one diff; what is ordered again is said beforehand."""
    console = Console()
    run_id = await console.service.order()
    await console.service.begun(run_id, *END)
    person = console.person("red-member")
    person.send(f"/runs/{run_id}/publish", publish="branch")
    assert "of the new run" not in words(person.get(f"/runs/{run_id}"))
    place = person.send(f"/runs/{run_id}/retry").headers["location"]
    again = await console.service.desk.get("red", RunId(place.rpartition("/")[2]))
    assert (again.order.publishes, again.order.publish) == (None, None)

    drafted = await console.service.order(publish="draft", notify="https://hooks.example.org/s3")
    await console.service.begun(drafted, *END)
    said = words(person.get(f"/runs/{drafted}"))
    assert (
        "Retry does what was ordered once more, and of the new run the diff is pushed to a new"
        " branch with a draft request, hooks.example.org is told."
    ) in said
    place = person.send(f"/runs/{drafted}/retry").headers["location"]
    again = await console.service.desk.get("red", RunId(place.rpartition("/")[2]))
    assert again.order.publish == "draft"
    assert "of the new run" not in words(console.person("red-viewer").get(f"/runs/{drafted}"))


async def test_the_diff_of_a_run_is_pushed_on_demand() -> None:
    """Once, where the service pushes at all, and after the end of the run."""
    console = Console()
    run_id = await console.service.order()
    person = console.person("red-member")
    assert person.send(f"/runs/{run_id}/publish", publish="branch").status_code == 409
    await console.service.begun(run_id, *END)
    assert "Push branch" in words(person.get(f"/runs/{run_id}"))
    assert person.send(f"/runs/{run_id}/publish", publish="odd").status_code == 400
    assert person.send(f"/runs/{run_id}/publish", publish="branch").status_code == 303
    assert (await console.service.desk.get("red", run_id)).order.publishes == "branch"
    console.service.published[run_id] = Publication(
        run_id, "red", now(), "done", f"turnout/{run_id}", "c" * 40, "javascript:alert(1)"
    )
    page = person.get(f"/runs/{run_id}")
    assert f"publication: done turnout/{run_id} at cccccccccccc" in words(page)
    assert 'href="javascript' not in page.text
    assert "Push branch" not in words(page)
    other = await console.service.order(repo="https://git.example.org/a/b")
    await console.service.begun(other, *END)
    assert "Push branch" not in words(person.get(f"/runs/{other}"))
    assert person.send(f"/runs/{other}/publish", publish="branch").status_code == 400


async def test_results_are_taken_as_files() -> None:
    """The patch byte for byte, and the run as one document in two forms."""
    console = Console()
    run_id = await console.service.order()
    person = console.person("red-viewer")
    assert person.get(f"/runs/{run_id}/patch").status_code == 409
    assert person.get(f"/runs/{run_id}/trajectory").status_code == 409
    await console.service.begun(run_id, PatchMade(PATCH), *END)
    patch = person.get(f"/runs/{run_id}/patch")
    assert (patch.content, patch.headers["content-type"]) == (DIFF, "text/x-diff")
    for form in ("atif", "turnout"):
        document = person.get(f"/runs/{run_id}/trajectory?format={form}")
        assert document.headers["content-disposition"].endswith(f'{run_id}.{form}.json"')
        assert json.loads(document.content)


@pytest.mark.parametrize("view", ["split", "unified"])
async def test_a_diff_is_shown_in_colours(view: str) -> None:
    """Each line with its numbers and its sign; what is hostile in it is only shown."""
    console = Console()
    run_id = await console.service.order()
    await console.service.begun(run_id, *END)
    part = console.person().part(f"/runs/{run_id}/diff?view={view}")
    said = words(part)
    assert "2 files +3 −1" in said
    assert "src/a.py +2 −1" in said
    assert "b.txt added +1 −0" in said
    assert f"return 2 {SEEN}".replace(" ", "") in said.replace(" ", "")
    assert "(no line break at the end)" in said
    assert '<span class="c-keyword">def</span>' in part.text
    assert "<script>alert" not in part.text
    assert not {"\u202e", "\x1b", "\u200b"} & set(part.text)
    assert "<html" in console.person().get(f"/runs/{run_id}/diff").text
