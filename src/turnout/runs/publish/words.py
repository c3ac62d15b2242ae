"""What is said of a change where it is pushed."""

from typing import Final

from turnout.core.events import ReviewNote
from turnout.runs.summary import RunResult

__all__ = ["commit_message", "draft_text", "outcome_words", "title_of"]

_TITLE: Final = 72


def title_of(prompt: str) -> str:
    """Return the first line of what was asked for, cut to 72 characters."""
    first = (prompt.strip().splitlines() or ["Change"])[0]
    return first if len(first) <= _TITLE else f"{first[: _TITLE - 1]}…"


def commit_message(result: RunResult, title: str = "") -> str:
    """Return the message of a run's commit, with trailers that lead back to it.

    Without a `title` of its own it begins with what was asked for.
    """
    verdict = result.verdict.name if result.verdict else "none"
    trailers = f"Turnout-Run: {result.run_id}\nTurnout-Verdict: {verdict}\n"
    first = title_of(title or result.task.prompt)
    return f"{first}\n\n{result.explanation.strip()}\n\n{trailers}"


def draft_text(result: RunResult) -> str:
    """Return what the reader of a draft is told: the explanation, and what our tests say."""
    detail = result.verdict.detail if result.verdict else "Our tests did not judge it."
    name = f"{result.verdict.name}: " if result.verdict else ""
    return f"{result.explanation.strip()}\n\nVerdict: {name}{detail}\nRun: {result.run_id}"


def outcome_words(result: RunResult | None, failure: str) -> str:
    """Return what whoever asked at a forge is told of the end of a run.

    `failure` says why nothing was published; empty where it was, or was not to be.
    """
    parts = [failure]
    if result is not None:
        parts += [result.reason] if result.outcome in {"cancelled", "failed"} else []
        parts += [result.explanation, *_findings(result)]
    return "\n\n".join(part.strip() for part in parts if part.strip())


def _findings(result: RunResult) -> list[str]:
    review = result.review
    if review is None:
        return []
    lines = [f"- {_place(note)}{note.text}" for note in review.notes]
    decision = f"Review: {review.decision}." if review.decision else ""
    return [decision, review.summary, "\n".join(lines)]


def _place(note: ReviewNote) -> str:
    if not note.path:
        return ""
    return f"{note.path}: " if note.line is None else f"{note.path}:{note.line}: "
