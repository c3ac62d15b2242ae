"""What sessions show of a model."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.samples import receipt

from turnout.core.events import (
    Entry,
    Event,
    HistoryCondensed,
    LoopEnded,
    ModelCallIntended,
    PatchMade,
    RunEnded,
    RunStarted,
    StepStarted,
    ToolCallDone,
    ToolCallIntended,
)
from turnout.core.ids import RunId, ToolCallId
from turnout.core.messages import UserMessage
from turnout.core.runs import FileChange, Outcome, Patch
from turnout.core.tasks import Task
from turnout.core.tools import ToolCall, ToolResult
from turnout.evals.checkup.exercises import EXERCISES
from turnout.evals.checkup.model import CallsSeen, CodeSeen, NotesSeen
from turnout.evals.checkup.notes import make_notes
from turnout.evals.checkup.reading import calls_seen, code_seen, notes_seen
from turnout.evals.grading.model import Grade
from turnout.runs.summary import fold

AT = datetime(2026, 1, 1, tzinfo=UTC)
TASK = Task("Do it.", "/repo", surface="files")
NOTES = make_notes(1, links=3)
PATHS = [
    next(path for path, text in NOTES.files.items() if stamp in text) for stamp in NOTES.stamps
]
RIGHT = f"It is {NOTES.words}."


def recorded(*events: Event, strategy: str = "loop") -> list[Entry]:
    """Return a record of a run with these events."""
    start = RunStarted(TASK, "c0ffee", "repair" if strategy == "repair" else "loop")
    return [Entry(RunId("run-1"), seq, AT, event) for seq, event in enumerate((start, *events), 1)]


def used(
    step: int, name: str, arguments: str, content: str = "", *, error: bool = False
) -> list[Event]:
    """Return a step with one tool call and its result."""
    call = ToolCall(ToolCallId(f"call-{step}"), name, arguments)
    return [
        StepStarted(step, "act", "latency"),
        ToolCallIntended(step, call),
        ToolCallDone(step, ToolResult(call.id, content, error), 0.1),
    ]


def read(step: int, *places: int) -> list[Event]:
    """Return a step that shows notes."""
    text = "\n".join(NOTES.files[PATHS[place]] for place in places)
    return used(step, "read_file", f'{{"path": "{PATHS[places[0]]}"}}', text)


def seen(*steps: list[Event], answer: str = RIGHT, outcome: Outcome = "answered") -> NotesSeen:
    """Return what a session with the notes shows."""
    last = StepStarted(len(steps) + 1, "act", "latency")
    ends = [last, LoopEnded(outcome, "", answer), RunEnded(outcome, "It ended.")]
    entries = recorded(*(event for step in steps for event in step), *ends)
    return notes_seen(fold(entries), entries, NOTES)


def test_a_phrase_that_is_known_at_the_end_was_remembered() -> None:
    """So many steps after it was read."""
    found = seen(read(1, 0), read(2, 1), read(3, 2))
    assert (found.read, found.links, found.steps) == (3, 3, 3)
    assert (found.remembered, found.looked_again, found.retained) == (True, False, True)


@pytest.mark.parametrize(
    ("steps", "answer", "retained"),
    [
        ([read(1, 0), read(2, 1), read(3, 2)], "I do not know.", False),
        ([read(1, 0), read(2, 1), read(3, 2), read(4, 0)], RIGHT, False),
        ([read(1, 0), read(2, 1)], RIGHT, None),
        ([read(1, 0), read(2, 2)], RIGHT, None),
        ([], RIGHT, None),
    ],
    ids=["forgotten", "looked again", "not to the end", "left one out", "never began"],
)
def test_what_was_looked_up_again_or_never_reached_was_not_remembered(
    steps: list[list[Event]], answer: str, retained: bool | None
) -> None:
    """Of a way that was not followed to its end nothing is known."""
    assert seen(*steps, answer=answer).retained is retained


def test_a_short_cut_is_seen() -> None:
    """As is that the conversation was condensed."""
    condensed: list[Event] = [HistoryCondensed("main", 1, "It began.")]
    found = seen(read(1, 0, 1, 2), condensed)
    assert (found.reached, found.at_once, found.condensed) == (True, 3, 1)


def test_calls_are_sound_where_they_can_be_used_as_they_came() -> None:
    """A fence is mended by us, other things by the gateway; a call in prose is none."""
    spoken = [
        ModelCallIntended(1, "act", "main", "k1", "m", (UserMessage("Do it."),)),
        ModelCallIntended(2, "act", "main", "k2", "m", (UserMessage("Make it a real call."),)),
        ModelCallIntended(3, "act", "main", "k3", "m", ()),
    ]
    events = [
        *spoken,
        *used(1, "read_file", '{"path": "a"}'),
        *used(2, "read_file", "{path: oops", error=True),
        *used(3, "no_such_tool", "{}", error=True),
        *used(4, "read_file", '```json\n{"path": "a"}\n```'),
        *used(5, "read_file", '{"path": "missing"}', "No such file.", error=True),
    ]
    entries = recorded(*events)
    mended = replace(receipt(), repairs=("call_in_text",), tools_called=("read_file",))
    found = calls_seen(fold(entries), entries, [mended, replace(receipt(), repairs=())])
    assert found == CallsSeen(made=5, unusable=2, mended=2, nudged=1)
    assert (found.sound, found.tried) == (1, 6)
    assert found + found == CallsSeen(10, 4, 4, 2)


def coded(*paths: str, edits: int = 1, failed: int = 0, strategy: str = "loop") -> CodeSeen:
    """Return what a coding session shows that changed these files."""
    steps = [used(n, "write_file", "{}", error=n <= failed) for n in range(1, edits + failed + 1)]
    changes = tuple(FileChange(path, "modified", 1, 1) for path in paths)
    patch = Patch(b"diff" if paths else b"", changes)
    events = [*(event for step in steps for event in step), PatchMade(patch)]
    entries = recorded(*events, strategy=strategy)
    return code_seen(fold(entries), EXERCISES[0], Grade("resolved", "All tests pass."))


def test_only_what_was_asked_for_may_be_changed() -> None:
    """And something has to be."""
    own = EXERCISES[0].path
    assert coded(own).kept_to_it
    assert coded(own, "README.md", "new.py").outside == ("README.md", "new.py")
    assert not coded(own, "README.md").kept_to_it
    assert not coded(edits=0).kept_to_it


def test_code_is_right_at_the_first_try_after_one_edit() -> None:
    """An edit that failed has written nothing; what commands have written is not counted."""
    own = EXERCISES[0].path
    assert coded(own, failed=2).first_try
    assert (coded(own, edits=3).edits, coded(own, edits=3).first_try) == (3, False)
    assert (coded(own, edits=0).edits, coded(own, edits=0).first_try) == (None, False)
    assert coded(own, edits=0, strategy="repair").edits == 0
