"""What sessions show of a model; pure."""

import json
from collections.abc import Iterable, Sequence
from typing import Final

from turnout.agent.tools.arguments import read_arguments
from turnout.agent.tools.surfaces import surface_of
from turnout.core.events import Entry, HistoryCondensed
from turnout.core.receipts import Receipt
from turnout.core.tools import Tool, ToolCall
from turnout.errors import ToolError
from turnout.evals.checkup.exercises import Exercise
from turnout.evals.checkup.model import CallsSeen, CodeSeen, NotesSeen
from turnout.evals.checkup.notes import Notes
from turnout.evals.grading.model import Grade
from turnout.evals.trials.service import Nudges
from turnout.runs.summary import RunResult, ToolUse

__all__ = ["calls_seen", "code_seen", "notes_seen"]

_EDITING: Final = frozenset({"apply_patch", "edit_file", "write_file"})


def calls_seen(
    result: RunResult,
    entries: Iterable[Entry],
    receipts: Iterable[Receipt],
    extra: Sequence[str] = (),
) -> CallsSeen:
    """Return how a session's tool calls came; `extra`: tools beside those of its surface."""
    nudges = Nudges()
    for entry in entries:
        nudges.see(entry)
    known = surface_of(result.task.surface, extra)
    calls = [use.call for use in result.tool_calls]
    unusable = mended = 0
    for call in calls:
        tool = known.find(call.name)
        if tool is None or not _fits(tool.spec, call):
            unusable += 1
        elif not _is_object(call):
            mended += 1
    # The gateway's mending shows on its receipts alone.
    mended += sum(len(receipt.tools_called) for receipt in receipts if receipt.repairs)
    return CallsSeen(len(calls), unusable, min(mended, len(calls) - unusable), nudges.count)


def _fits(tool: Tool, call: ToolCall) -> bool:
    try:
        read_arguments(tool, call.arguments)
    except ToolError:
        return False
    return True


def _is_object(call: ToolCall) -> bool:
    try:
        return isinstance(json.loads(call.arguments or "{}"), dict)
    except (ValueError, RecursionError):
        return False


def notes_seen(result: RunResult, entries: Iterable[Entry], notes: Notes) -> NotesSeen:
    """Return what became of the session with the notes."""
    showing = [[stamp in _text(use) for stamp in notes.stamps] for use in result.tool_calls]
    seen = {at for shown in showing for at, there in enumerate(shown) if there}
    read = next((at for at in range(len(notes.stamps)) if at not in seen), len(notes.stamps))
    opened = [
        use.step
        for use, shown in zip(result.tool_calls, showing, strict=True)
        if shown and shown[0]
    ]
    return NotesSeen(
        links=len(notes.stamps),
        read=read,
        at_once=max((sum(shown) for shown in showing), default=0),
        steps=result.steps - opened[0] if opened else 0,
        remembered=notes.words in result.explanation.casefold(),
        looked_again=len(opened) > 1,
        condensed=sum(isinstance(entry.event, HistoryCondensed) for entry in entries),
        outcome=result.outcome,
        reason=result.reason,
    )


def code_seen(result: RunResult, exercise: Exercise, grade: Grade) -> CodeSeen:
    """Return what became of a coding task."""
    paths = [change.path for change in result.patch.files]
    return CodeSeen(
        task=exercise.name,
        grade=grade.name,
        detail=grade.detail,
        outside=tuple(path for path in paths if path not in exercise.allowed),
        changed=bool(paths),
        edits=_edits(result),
    )


def _edits(result: RunResult) -> int | None:
    if result.strategy not in (None, "loop"):
        return sum(call.kind == "act" for call in result.calls)
    edits = sum(
        use.call.name in _EDITING and use.result is not None and not use.result.is_error
        for use in result.tool_calls
    )
    return None if result.patch and not edits else edits


def _text(use: ToolUse) -> str:
    if use.result is None:
        return ""
    return use.result.full or use.result.content
