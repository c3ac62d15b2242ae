"""What became of a patch before the tests that judge it."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["Grade", "GradeName"]

GradeName = Literal[
    "resolved", "unresolved", "no_patch", "does_not_apply", "tests_touched", "infrastructure"
]
"""tests_touched: it changes what judges it, where that alone fails it.

infrastructure: we could not grade, which says nothing about the patch.
"""


@dataclass(frozen=True, slots=True)
class Grade:
    """Each check by its name; None where it was not looked into."""

    name: GradeName
    detail: str
    """One sentence for people."""
    failed_before: bool | None = None
    """Without any fix the tests that must pass fail, and those that must go on passing pass."""
    passes_after: bool | None = None
    """With the patch both pass, and none that failed was reported otherwise."""
    tests_untouched: bool | None = None
    tests_touched: tuple[str, ...] = ()
    """Test files that existed or belong to the task, whose changes were left out."""
    control_touched: tuple[str, ...] = ()
    """The same for files that say which tests run and what counts as passing."""
    tests_added: tuple[str, ...] = ()
    """New test files, left out as well; that is nobody's fault."""
    missing: tuple[str, ...] = ()
    """Tests that must pass and do not."""
    lost: tuple[str, ...] = ()
    """Tests that passed before and do not any more."""
    canary_failed: bool | None = None
    """A test of our own that is bound to fail was reported so."""
    bent_failed: bool | None = None
    """The tests that must pass were reported as failed where we had bent what they expect."""
    smells: tuple[str, ...] = ()
    """What a person should look at; no part of the verdict."""
    environment: str = ""
    """Digest of the base tree and of what is installed beside it."""
    seconds: float = 0.0
    """Of the grading, without what is done once for an instance."""

    @property
    def dropped(self) -> tuple[str, ...]:
        """Paths whose changes were left out before the tests ran."""
        return (*self.tests_touched, *self.control_touched, *self.tests_added)
