"""A review agent: the loop in a workspace that holds the change, with tools that only read."""

import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, replace
from typing import Final, get_args

from turnout.agent.approval import Approver
from turnout.agent.base import AgentConfig, Brief, ModelClient
from turnout.agent.loop import LoopStrategy
from turnout.agent.loop.state import Role
from turnout.agent.tools.arguments import unfenced
from turnout.agent.tools.bounds import bounds_of
from turnout.agent.tools.output import cap
from turnout.agent.tools.run_tests import headline
from turnout.core.clock import Clock
from turnout.core.events import (
    Event,
    LoopEnded,
    ReviewDecision,
    Reviewed,
    ReviewNote,
    Severity,
)
from turnout.core.json import JsonObject, as_object, as_objects, as_text
from turnout.core.runs import Patch, TestReport
from turnout.sandbox.base import Sandbox

__all__ = ["Judgement", "ReviewSubject", "read_judgement", "review"]

_MOST_STEPS: Final = 20
_DIFF: Final = 24_000
_PATHS: Final = 4_000
"""Characters."""
_TEXT: Final = 200_000
"""Characters of an answer that are searched for the judgement, from its end."""
_STARTS: Final = 200
_MOST_NOTES: Final = 50
_PATH: Final = 300
_NOTE: Final = 2_000
_SAID: Final = 400

_WORDS: Final[dict[str, ReviewDecision]] = {
    "approve": "approve",
    "approved": "approve",
    "annotate": "annotate",
    "annotated": "annotate",
    "block": "block",
    "blocked": "block",
}
_SEVERITIES: Final[dict[str, Severity]] = {word: word for word in get_args(Severity)}


@dataclass(frozen=True, slots=True)
class ReviewSubject:
    """What is reviewed."""

    brief: Brief
    """Of the attempt that made the change; its step number and spend are those of now."""
    patch: Patch
    tests_after: TestReport | None
    asked: bool = False
    """Whether the review is what the run is for: it may block, whatever the configuration says."""
    paths: tuple[str, ...] = ()
    """Files that the patch changes; told where the diff is too long to be shown whole."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a review agent says."""

    word: ReviewDecision
    summary: str
    notes: tuple[ReviewNote, ...] = ()


async def review(
    client: ModelClient,
    sandbox: Sandbox,
    config: AgentConfig,
    clock: Clock,
    subject: ReviewSubject,
    approver: Approver | None = None,
    record: Iterable[Event] = (),
) -> AsyncIterator[Event]:
    """Have a change reviewed, yielding each event before going on; the last one is `Reviewed`.

    `record`: the events of this review that an earlier service has put on record.
    Where a review may block, one that comes to no judgement lets nothing pass.
    """
    brief = replace(subject.brief, surface="review", prompt=_asked(subject), lessons="")
    role = Role("review", f"review-{brief.attempt}")
    steps = min(bounds_of("review", config).steps, _MOST_STEPS)
    reading = replace(config, max_steps=steps, extra_tools=())
    strategy = LoopStrategy(client, sandbox, reading, clock, role, approver)
    end = LoopEnded("failed", "It ended without saying how.")
    async for event in strategy.run(brief, record):
        if isinstance(event, LoopEnded):
            end = event
        else:
            yield event
    may_block = subject.asked or config.review == "block"
    judgement = read_judgement(end.answer) if end.outcome == "answered" else None
    if judgement is None:
        why = end.reason if end.outcome != "answered" else f"It said: {end.answer[:_SAID]}"
        text = f"The review came to no decision. {why}"
        yield Reviewed(may_block, text, decided=False, outcome=end.outcome)
        return
    blocked = may_block and judgement.word == "block"
    yield Reviewed(blocked, judgement.summary, judgement.notes, decision=judgement.word)


def read_judgement(text: str) -> Judgement | None:
    """Return the last judgement that a text holds, whatever stands around it; None without one."""
    text = unfenced(text[-_TEXT:])
    end = len(text)
    for _ in range(_STARTS):
        start = text.rfind("{", 0, end)
        if start < 0:
            return None
        judgement = _judgement(_object_at(text, start))
        if judgement is not None:
            return judgement
        end = start
    return None


def _object_at(text: str, start: int) -> JsonObject:
    try:
        value, _ = json.JSONDecoder(strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        return {}
    return as_object(value)


def _judgement(said: JsonObject) -> Judgement | None:
    # Models say either, and an answer of an earlier version may be on record.
    decision = as_text(said.get("decision")) or as_text(said.get("verdict"))
    word = _WORDS.get(decision.strip().lower())
    if word is None:
        return None
    notes = [note for each in as_objects(said.get("notes")) if (note := _note(each)) is not None]
    return Judgement(word, as_text(said.get("summary"))[:_NOTE], tuple(notes[:_MOST_NOTES]))


def _note(said: JsonObject) -> ReviewNote | None:
    text, line = as_text(said.get("text")).strip(), said.get("line")
    if not text:
        return None
    if isinstance(line, str) and line.isdecimal() and len(line) < 10:
        line = int(line)
    counted = isinstance(line, int) and not isinstance(line, bool) and line > 0
    severity = _SEVERITIES.get(as_text(said.get("severity")).strip().lower())
    return ReviewNote(
        as_text(said.get("path"))[:_PATH],
        line if counted and isinstance(line, int) else None,
        text[:_NOTE],
        severity == "error" if severity else said.get("blocks") is True,
        severity,
    )


def _asked(subject: ReviewSubject) -> str:
    diff = cap(subject.patch.diff.decode(errors="backslashreplace"), _DIFF)
    listed = cap("\n".join(subject.paths), _PATHS).text if diff.elided else ""
    files = f"Files that it changes; read those that the diff does not show:\n{listed}\n\n"
    purpose = "What is said of it" if subject.asked else "Task that it was made for"
    tests = "They were not run." if subject.tests_after is None else headline(subject.tests_after)
    return (
        f"Review this change.\n\n{purpose}:\n{subject.brief.prompt}\n\n"
        f"{files if listed else ''}Diff:\n{diff.text}\n\nTests with the change:\n{tests}"
    )
