"""The whole record, readable."""

import json
from typing import get_args

import pytest
from tests.unit.runs.parts import FAILING, PATCH
from tests.unit.runs.test_summary import STARTED, call, record

from turnout.cli.runs.full import entry_text
from turnout.core.events import (
    ApprovalAsked,
    ApprovalGiven,
    AttemptChosen,
    AttemptStarted,
    CheckpointMade,
    ConnectionsAsked,
    Event,
    Explained,
    HistoryCondensed,
    LoopEnded,
    ModelCallFailed,
    ModelCallIntended,
    Notice,
    PatchMade,
    PlanMade,
    PlanUpdated,
    ResourcesUsed,
    Reviewed,
    ReviewNote,
    RunEnded,
    RunResumed,
    SpendCorrected,
    StepStarted,
    TestsRan,
    ToolCallDone,
    ToolCallIntended,
    VerdictGiven,
    WorkspaceReady,
)
from turnout.core.ids import RequestId, ToolCallId
from turnout.core.messages import SystemMessage, UserMessage
from turnout.core.money import Micros
from turnout.core.runs import Connection, Verdict
from turnout.core.tools import ToolCall, ToolResult
from turnout.core.usage import Usage

ID = ToolCallId("c")
EDIT = ToolCall(ID, "edit_file", json.dumps({"path": "a.py", "old": "one\ntwo", "new": "2"}))
ASKED = (SystemMessage("Be brief."), UserMessage("Fix it.\nPlease."))
EVENTS: list[tuple[Event, list[str]]] = [
    (STARTED, ["task: test_pages fails; fix the code", "base: HEAD ("]),
    (RunResumed(2, "host-1-ab12"), ["segment: 2", "worker: host-1-ab12"]),
    (CheckpointMade("0a", "c0", ("0a",), 4096, 0.031), ["layer: 0a", "4096", "seconds: 0.031"]),
    (WorkspaceReady("walls", "pytest -q", ("six",), 0.25), ["walls: walls", "requirements: six"]),
    (Notice("Dirty.", "warning"), ["warning: Dirty."]),
    (TestsRan("before", FAILING), ["phase: before", "1 failed, 1 passed", "failed: t.py::b"]),
    (StepStarted(2, "act", "latency"), ["step: 2 act, for latency"]),
    (
        ModelCallIntended(1, "plan", "main", "k", "auto", ASKED),
        ["system: Be brief.", "user:\n        Fix it.\n        Please."],
    ),
    (call(1_250_000), ["assistant: hello", "cost: $1.25", "request: req-1"]),
    (ModelCallFailed(1, "act", "main", "k", 503, "upstream", "No."), ["status: 503", "error: No."]),
    (ToolCallIntended(1, EDIT), ["edit_file:", "path: a.py", "one\n", "two\n", "new: 2"]),
    (ToolCallDone(1, ToolResult(ID, "no such lines", is_error=True), 0.1), ["error: no such"]),
    (
        ConnectionsAsked((Connection("a.example", 443, True, "", 1, 2),)),
        ["asked: connection to a.example:443: 1 bytes out, 2 in"],
    ),
    (
        SpendCorrected(Micros(1_200), Micros(1_500), Usage(900, 40), (RequestId("req-1"),)),
        ["on record: $0.0012", "by receipts: $0.0015", "req-1"],
    ),
    (ResourcesUsed(1.5, None, 1 << 20, 60, 30), ["CPU seconds: 1.5", "MiB: not known", "disk"]),
    (PlanMade("Look."), ["text: Look."]),
    (PlanUpdated(("done", "open")), ["1: done", "2: open"]),
    (HistoryCondensed("main", 7, "So far."), ["text: So far."]),
    (ApprovalAsked(3, EDIT, "edit_file"), ["rule: edit_file", "path: a.py"]),
    (ApprovalGiven(3, ID, False, "ann", "No."), ["refused: by ann", "note: No."]),
    (AttemptStarted(2, 3, "quality", "It failed."), ["2 of 3, for quality", "told: It failed."]),
    (AttemptChosen(2, "Accepted."), ["attempt: 2", "reason: Accepted."]),
    (
        Reviewed(True, "Bad.", (ReviewNote("a.py", 3, "Wrong.", True),)),
        ["review: blocks", "summary: Bad.", "a.py:3: error: Wrong."],
    ),
    (LoopEnded("answered", "Done.", "It was 1."), ["reason: Done.", "answer: It was 1."]),
    (PatchMade(PATCH), ["diff --git a/pages.py", "        +b"]),
    (
        VerdictGiven(Verdict("resolved", True, True, True, (), "Yes.")),
        ["verdict: resolved", "Yes."],
    ),
    (Explained("Why."), ["text: Why."]),
    (RunEnded("answered", "Done."), ["outcome: answered"]),
]


@pytest.mark.parametrize(("event", "parts"), EVENTS, ids=[event.type for event, _ in EVENTS])
def test_every_event_is_shown_with_what_it_holds(event: Event, parts: list[str]) -> None:
    """Messages, arguments, results and output are text, with their line breaks."""
    (entry,) = record(event)
    text = entry_text(entry)
    assert text.startswith(f"#1 00:00:00 {event.type}\n")
    assert [part for part in parts if part not in text] == []


def test_no_kind_of_event_is_forgotten() -> None:
    """The list above names each of them."""
    assert {type(event) for event, _ in EVENTS} == set(get_args(Event))


def test_the_record_cannot_steer_the_terminal() -> None:
    """Names of arguments are hostile too."""
    odd = ToolCall(ID, "run", json.dumps({"\x1b[2J": "\u202e"}))
    (entry,) = record(ToolCallIntended(1, odd))
    assert r"\x1b[2J: \u202e" in entry_text(entry)


@pytest.mark.parametrize("arguments", ["{", "[1]"])
def test_arguments_that_cannot_be_read_are_shown_as_they_came(arguments: str) -> None:
    """Nothing is left out."""
    (entry,) = record(ToolCallIntended(1, ToolCall(ID, "run", arguments)))
    assert f"run: {arguments}" in entry_text(entry)
