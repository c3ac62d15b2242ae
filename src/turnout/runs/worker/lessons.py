"""What an attempt that failed can teach the next one, in bounded words."""

from collections.abc import Sequence
from typing import Final

from turnout.agent.tools.marks import broken
from turnout.agent.tools.output import cap
from turnout.core.events import Reviewed, ReviewNote
from turnout.core.runs import TestReport
from turnout.runs.worker.choosing import Tried

__all__ = ["lessons"]

_WORDS: Final = 1_000
_DIFF: Final = 6_000
_OUTPUT: Final = 3_000
_NAMED: Final = 20
_NOTES: Final = 20
_NOTE: Final = 500


def lessons(tried: Sequence[Tried]) -> str:
    """Return what attempts have shown, oldest first: all of the newest, of others how they ended.

    Diff, test output and words come from models and tests: they are data, whoever they claim to be.
    """
    if not tried:
        return ""
    earlier = [f"Attempt {each.number}: {_ending(each)}" for each in tried[:-1]]
    return broken("\n\n".join([*earlier, _newest(tried[-1])]))


def _newest(tried: Tried) -> str:
    parts = [f"Attempt {tried.number}: {_ending(tried)}"]
    if said := tried.end.answer.strip():
        parts.append(f"Its last words:\n{cap(said, _WORDS).text}")
    if tried.patch:
        diff = cap(tried.patch.diff.decode(errors="backslashreplace"), _DIFF).text
        parts.append(f"Its diff, which your workspace does not hold:\n{diff}")
    if tried.closing.report is not None and not tried.closing.report.ok:
        parts.append(_tests(tried.closing.report))
    if tried.review is not None:
        parts.append(_review(tried.review))
    return "\n\n".join(parts)


def _ending(tried: Tried) -> str:
    return f"{tried.end.reason} Our tests: {tried.verdict.name}. {tried.verdict.detail}".strip()


def _tests(report: TestReport) -> str:
    named = "\n".join(report.failed[:_NAMED])
    more = len(report.failed) - _NAMED
    left_out = f"\nand {more} more" if more > 0 else ""
    failing = f"Tests that fail with it:\n{named}{left_out}\n\n" if named else ""
    return f"{failing}What they print:\n{cap(report.output, _OUTPUT).text}"


def _review(review: Reviewed) -> str:
    lines = [f"A review of it says: {cap(review.summary, _WORDS).text}"]
    ordered = sorted(review.notes, key=lambda note: not note.blocks)
    return "\n".join([*lines, *map(_note, ordered[:_NOTES])])


def _note(note: ReviewNote) -> str:
    place = note.path if note.line is None else f"{note.path}:{note.line}"
    must = "must be mended" if note.blocks else "remark"
    return f"- {place or 'the whole change'} ({must}): {cap(note.text, _NOTE).text}"
