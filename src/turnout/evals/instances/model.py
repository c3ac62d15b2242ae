"""One evaluation item: a task, and what judges what became of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Instance", "Spec"]

Spec = Literal["self-contained", "needs-tests"]
"""needs-tests: what is wanted cannot be known without seeing the tests."""


@dataclass(frozen=True, slots=True)
class Instance:
    """One task with the tests that the agent does not see."""

    instance_id: str
    problem_statement: str
    repository: str
    """Absolute path or URL; empty where `files` holds the whole tree."""
    base_commit: str
    files: Mapping[str, str]
    """The tree at base, for an instance that brings its own."""
    hidden_tests: Mapping[str, str | None]
    """Test files written before grading, by path; None: the file is removed then."""
    test_patch: str
    """Unified diff of the hidden tests, applied before grading."""
    fail_to_pass: tuple[str, ...]
    """Node ids that must pass; empty: every test must, the hidden ones included."""
    pass_to_pass: tuple[str, ...]
    test_command: str | None
    requirements: tuple[str, ...] | None
    digest: str
    """Hash of the row: a result of another row is no result of this one."""
    repo: str = ""
    """The repository as the row names it, for people."""
    title: str = ""
    hints: str = ""
    """What was said beside the task, such as the rest of a commit message; shown to no agent."""
    patch: str = ""
    """Unified diff of the fix that is known; empty where none is."""
    kind: str = ""
    """Where it comes from, such as `commit` or `merge`."""
    difficulty: str = ""
    """Size of the known fix in lines of code: `1`, `2-5`, `6-20` or `>20`; empty: unknown."""
    licence: str = ""
    """SPDX identifier of the repository's licence."""
    source: str = ""
    """What it was made from, for people."""
    spec: Spec = "self-contained"
    setup: str | None = None
    """Shell command that sets the workspace up before anything runs in it."""
    extra_files: Mapping[str, str] = field(default_factory=dict)
    """Generated files that the commit lacks, written into the workspace before anything runs."""
    bare: bool = False
    """Whether it was read from facts, which do not name the tests that must keep passing."""
    counted: int | None = None
    """How many other tests pass before the fix and with it, as facts say; None: they do not."""
    place: str = field(default="", compare=False)
    """File and line that it was read from, for people."""
