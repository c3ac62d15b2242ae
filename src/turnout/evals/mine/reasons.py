"""Why a commit does not become an evaluation item."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["REASONS", "Dropped", "Reason"]

Reason = Literal[
    "not_a_fix",
    "no_source",
    "no_test",
    "odd_files",
    "many_files",
    "too_large",
    "no_code",
    "needs_tests",
    "unprepared",
    "not_runnable",
    "not_collected",
    "nothing_fails",
    "not_mended",
    "breaks_tests",
    "flaky",
    "slow",
    "differs",
]

REASONS: Final[Mapping[Reason, str]] = {
    "not_a_fix": "its first line does not read like a fix",
    "no_source": "it changes no Python source",
    "no_test": "it changes no test",
    "odd_files": "it changes links, submodules, or files that are no text or too long",
    "many_files": "it changes too many files",
    "too_large": "it changes too many lines of code",
    "no_code": "it changes comments and docstrings only",
    "needs_tests": "only its tests say what is wanted",
    "unprepared": "its parent cannot be set up",
    "not_runnable": "its tests cannot be run, fixed or not",
    "not_collected": "its tests cannot be collected before it: they need what it adds",
    "nothing_fails": "no test fails before it",
    "not_mended": "tests fail before it, and after it as well",
    "breaks_tests": "tests that pass before it fail after it",
    "flaky": "its tests pass and fail as it comes",
    "slow": "its tests take too long",
    "differs": "what its tests show is not what the facts say",
}
"""For people, in the order in which it is looked at."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """A commit that is left out."""

    reason: Reason
    detail: str = ""
    """What was found, for people; may hold text of the repository."""
