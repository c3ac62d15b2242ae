"""What the first line of a commit says of it."""

import re
from typing import Final

from turnout.evals.instances.clone import Commit

__all__ = ["reads_like_a_fix", "title_of"]

_LONGEST: Final = 300
_MERGE: Final = re.compile(r"^(?:merged?\b|pull request\b)", re.IGNORECASE)
_NO_FIX: Final = re.compile(
    r"^\W*(?:chore|docs?|ci|build|style|tests?|refactor|release|bump|deps?|typing|types|lint)"
    r"(?:\([^)]*\))?!?:"
    r"|\b(?:releas(?:e|es|ed|ing)|bump(?:s|ed|ing)?|changelog|pre-commit|dependabot|renovate"
    r"|type hints?|typing|type annotations?|mypy|pyright|flake8|pylint|ruff|isort|pyupgrade"
    r"|renam(?:e|es|ed|ing)|refactor\w*|reformat\w*|clean(?:ed)? ?up|cosmetic|whitespace"
    r"|docstrings?|readme|travis|appveyor|github actions|deprecate[sd]?"
    r"|(?:drop|remove)(?:s|ped|d)? (?:support|python)|merge branch|revert(?:s|ed)?)\b",
    re.IGNORECASE,
)
_FIX: Final = re.compile(
    r"\b(?:(?:bug|hot)?fix(?:e[sd]|ing)?|bugs?|regress\w*|errors?|\w+error|exceptions?|crash\w*"
    r"|fail\w*|wrong\w*|incorrect\w*|invalid|correct\w*|broken|break\w*|issues?|problems?"
    r"|handl\w+|prevent\w*|avoid\w*|rais\w+|allow\w*|support\w*|accept\w*|reject\w*|ensur\w+"
    r"|respect\w*|honou?r\w*|preserv\w+|keep\w*|escap\w+|validat\w+|forbid\w*|refus\w+"
    r"|ignor\w+|pass(?:es|ed|ing)?|propagat\w+|forwards?|mak(?:e|es|ing)|don'?t|doesn'?t"
    r"|not|no longer|never|always|instead|should|must|missing|lost|los(?:e|es|ing)|leak\w*"
    r"|races?|deadlock\w*|hang\w*|infinite|overflow\w*|off[- ]by[- ]one|edge[- ]cases?|none"
    r"|null|empty|negative|unicode|typo|mutat\w+|inconsisten\w+|consisten\w+|resolve[sd]?"
    r"|close[sd]?|repair\w*|gracefully|duplicat\w+|mismatch\w*|undefined|unexpected\w*)\b",
    re.IGNORECASE,
)
_REFERENCES: Final = (
    re.compile(r"^(?:fix(?:e[sd])?|close[sd]?|resolve[sd]?)\s+#\d+\s*[:,.-]+\s*", re.IGNORECASE),
    re.compile(r"\s*\(#\d+\)\s*$"),
    re.compile(
        r"[\s.,;(]*\b(?:fix(?:e[sd])?|close[sd]?|resolve[sd]?|see|refs?)\s+#\d+[\s.)]*$",
        re.IGNORECASE,
    ),
)


def title_of(commit: Commit, inner: str = "") -> str:
    """Return what a commit is about: for a merge what it brings in, as its text or `inner` says."""
    texts = (commit.subject, *commit.body[:_LONGEST].splitlines())
    lines = [" ".join(line.split())[:_LONGEST] for line in texts]
    if len(commit.parents) > 1 and _MERGE.match(commit.subject):
        lines = [*lines[1:], inner]
    return next((_without_references(line) for line in lines if line), "")


def reads_like_a_fix(title: str) -> bool:
    """Say whether a title names something that was wrong, and no upkeep.

    It only saves work: whether it was a fix is for its tests to show.
    """
    return _NO_FIX.search(title) is None and _FIX.search(title) is not None


def _without_references(line: str) -> str:
    """Return a title without numbers of issues, which say nothing here; never nothing."""
    short = line
    for reference in _REFERENCES:
        short = reference.sub("", short)
    return short.rstrip(" .") or line
