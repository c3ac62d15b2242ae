"""Forges, where people keep repositories, issues and pull or merge requests."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Forge", "ForgeKind", "Origin", "Standing", "ThreadKind"]

ForgeKind = Literal["github", "gitlab"]
"""The shape of its API and of its webhooks."""

Standing = Literal["none", "write", "maintain", "admin"]
"""What a person may do with a repository, as far as it matters here."""

ThreadKind = Literal["issue", "pull"]
"""Where people talk: an issue, or a pull or merge request."""


@dataclass(frozen=True, slots=True)
class Forge:
    """A forge whose events start runs, and that is told what came of them."""

    name: str
    kind: ForgeKind
    api: str
    """Base URL of its API, without a slash at the end; nothing else is ever asked."""
    secret_variable: str
    """Environment variable with the secret of its webhooks."""
    token_variable: str
    """Environment variable with the token of our account there."""
    key: str
    """Name of the key of ours that its runs are charged to; they are runs of that key's project."""
    repositories: Mapping[str, str] = field(default_factory=dict)
    """Path at the forge, such as `acme/shop`, to the repository's name at the service."""
    fix_label: str = "turnout"
    """The label of an issue that asks for a run."""
    review_label: str = "turnout-review"
    """The label of a pull or merge request that asks for a review."""
    starters: Standing = "write"
    """What somebody must be allowed at a repository to start a run on it."""

    def path_of(self, repository: str) -> str | None:
        """Return the path here of a repository of the service; None where it is not here."""
        return next((path for path, name in self.repositories.items() if name == repository), None)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where at a forge somebody has asked for a run, and is told of its end."""

    forge: str
    """Its name here."""
    path: str
    """Of the repository there."""
    thread: ThreadKind
    number: int
    asked_by: str
    """Name of their account there."""
    title: str = ""
    """Of the issue or request, as anybody may have written it."""
