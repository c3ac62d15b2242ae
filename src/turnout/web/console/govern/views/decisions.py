"""A decision: who may serve a request, best first, and what each figure rests on."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from turnout.core.receipts import Candidate, Decision, Grounds
from turnout.web.console.govern.views.words import (
    age_text,
    count_text,
    milliseconds_text,
    share_text,
)

__all__ = ["CandidateView", "DecisionView", "decision_view", "grounds_text"]

_SAID: Final = {
    "quality": ("quality", "task"),
    "tool_success": ("tool success", "call"),
    "latency": ("first token", "answer"),
}
"""What each figure is called, and what it counts."""


@dataclass(frozen=True, slots=True)
class CandidateView:
    """One deployment that was looked at."""

    place: int
    """1 is the first choice; 0: it was left out."""
    deployment: str
    score: str
    """Empty where it has none."""
    said: str
    """What the score was made of, or why it was left out."""
    grounds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DecisionView:
    """What would become of a request, or became of it."""

    chosen: str
    """Empty where nobody may serve."""
    reason: str
    facts: tuple[tuple[str, str], ...]
    """What was decided by, as name and value."""
    candidates: tuple[CandidateView, ...]


def decision_view(decision: Decision, policy: str, *, is_draft: bool = False) -> DecisionView:
    """Return what is shown of a decision; `policy` is the name of the one that it was under."""
    places = {id_: place for place, id_ in enumerate(decision.order, 1)}
    shown = [_candidate(each, places.get(each.deployment, 0)) for each in decision.candidates]
    shown.sort(key=lambda each: each.place or len(shown) + 1)
    return DecisionView(
        chosen=decision.order[0] if decision.order else "",
        reason=decision.reason,
        facts=tuple(_facts(decision, policy, is_draft=is_draft)),
        candidates=tuple(shown),
    )


def grounds_text(grounds: Grounds) -> str:
    """Return what one figure rests on: value, sample size, age and source."""
    samples, age = grounds.samples, grounds.age_seconds
    figure, noun = _SAID[grounds.figure]
    duration = grounds.figure == "latency"
    value = milliseconds_text(grounds.value) if duration else share_text(grounds.value)
    return ", ".join(
        [
            f"{figure} {value}",
            "sample size not stated" if samples is None else f"n = {count_text(samples, noun)}",
            "date not stated" if age is None else f"{age_text(age)} old",
            *([] if grounds.source == "measured" else [f"from {grounds.source}"]),
        ]
    )


def _facts(decision: Decision, policy: str, *, is_draft: bool) -> Iterator[tuple[str, str]]:
    revision = decision.policy_revision
    number = f"revision {revision}" if revision else "as the configuration file has it"
    number = "not saved" if is_draft else number
    yield "Policy", f"{policy}, {number}"
    yield "Objective", decision.objective
    yield "Task kind", f"{decision.task} ({decision.task_source})"
    if decision.sticky:
        yield "Held", "an open tool call keeps the conversation on its model"
    if decision.kept_warm:
        yield "Warm", "its prompt cache holds the conversation so far"
    if decision.caches:
        yield "Caching", "the first choice caches prompts"


def _candidate(candidate: Candidate, place: int) -> CandidateView:
    return CandidateView(
        place=0 if candidate.dropped else place,
        deployment=candidate.deployment,
        score="" if candidate.score is None else f"{candidate.score:.4g}",
        said=candidate.dropped or candidate.note,
        grounds=tuple(map(grounds_text, candidate.grounds)),
    )
