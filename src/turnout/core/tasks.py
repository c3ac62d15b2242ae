"""What a user asks for."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["SurfaceName", "Task"]

SurfaceName = Literal["guide", "shell", "files", "review"]
"""A named set of tools that a run declares."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a user asks: words, a repository and a commit to start from."""

    prompt: str
    repository: str
    """Absolute path or URL of a git repository."""
    base: str = "HEAD"
    """Revision to start from, as the user wrote it."""
    surface: SurfaceName = "guide"
    test_command: str | None = None
    """Shell command that runs the tests in the workspace; None: detected."""
    requirements: tuple[str, ...] | None = None
    """Requirement specifiers of the test environment; None: those the repository declares."""
    setup: str | None = None
    """Shell command that sets the workspace up before any work; None: nothing more is needed."""
