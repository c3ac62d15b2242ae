"""What a user asks for."""

from dataclasses import dataclass
from typing import Literal

from pydantic import ConfigDict

__all__ = ["ReviewAsk", "RunKind", "SurfaceName", "Task"]

RunKind = Literal["change", "review"]
"""change: a run that works on a repository; review: one that reads a change to it."""

SurfaceName = Literal["guide", "shell", "files", "review"]
"""A named set of tools that a run declares."""


@dataclass(frozen=True, slots=True)
class ReviewAsk:
    """A change that is there already, and is to be reviewed."""

    __pydantic_config__ = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    diff: bytes = b""
    """What `git apply` takes, on the task's base; empty until it is known of a `head`."""
    head: str = ""
    """Revision of which the change is meant, since it left the base; empty for a `diff`."""


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
    review: ReviewAsk | None = None
    """What is to be reviewed; None: the task is to be worked on."""

    @property
    def kind(self) -> RunKind:
        """What a run of it does."""
        return "change" if self.review is None else "review"
