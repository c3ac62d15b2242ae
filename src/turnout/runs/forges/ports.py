"""What is asked of forges, and what the rest of the service asks of us."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from turnout.core.ids import RunId
from turnout.core.service.forges import Standing, ThreadKind
from turnout.core.service.orders import OrderedRun
from turnout.runs.forges.hooks.triggers import Person

__all__ = ["Change", "Draft", "ForgeClient", "ForgeDesk", "Proposal", "Secrets", "Told"]

Secrets = Callable[[str], str | None]
"""Reads a variable of the environment; None where it is not set."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A pushed branch that is to become a draft of a pull or merge request."""

    repository: str
    """Its name at the service."""
    run_id: RunId
    branch: str
    title: str
    text: str
    """Why and how, in plain words; whatever a model wrote does nothing there."""
    base: str | None = None
    """Branch that it is for; None: the main one of the repository at the forge."""
    issue: int | None = None
    """The issue that it is for."""


@dataclass(frozen=True, slots=True)
class Told:
    """What whoever asked is told beside the outcome."""

    text: str
    link: str | None = None
    """Of the draft."""


class ForgeDesk(Protocol):
    """What the service asks of forges; each is done once, however often it is asked for.

    `ForgeError` where it did not work; that of a forge or a repository that is no longer set up
    is not `passing`.
    """

    def draws(self, repository: str) -> bool:
        """Return whether a repository of the service is one of a forge."""
        ...

    async def open_draft(self, draft: Draft) -> str:
        """Return the address of the request of a branch, which is opened where there is none."""
        ...

    async def tell(self, run: OrderedRun, told: Told) -> None:
        """Comment where a run was asked for on what it came to; nothing for any other run."""
        ...


@dataclass(frozen=True, slots=True)
class Proposal:
    """A pull or merge request to be opened."""

    branch: str
    base: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Change:
    """What a pull or merge request would change."""

    base: str
    """The commit at which its branch began, in full."""
    diff: bytes
    """As `git apply` takes it there."""


class ForgeClient(Protocol):
    """One forge; paths are of repositories there. `ForgeError` where it does not answer as asked.

    Nothing here merges, closes, deletes or pushes.
    """

    async def standing(self, path: str, person: Person) -> Standing:
        """Return what somebody may do with a repository."""
        ...

    async def main_branch(self, path: str) -> str:
        """Return the branch that requests are usually for."""
        ...

    async def request_of(self, path: str, branch: str) -> str | None:
        """Return the address of the newest request from a branch, open or not."""
        ...

    async def open_request(self, path: str, proposal: Proposal) -> str:
        """Open a draft of a request and return its address."""
        ...

    async def comments(
        self, path: str, thread: ThreadKind, number: int, since: datetime
    ) -> list[str]:
        """Return the comments, at least those of the newest thousand since a moment."""
        ...

    async def comment(self, path: str, thread: ThreadKind, number: int, text: str) -> None:
        """Comment on an issue or a request."""
        ...

    async def nod(self, path: str, thread: ThreadKind, number: int, comment: int | None) -> None:
        """Put a sign on a comment, or on the issue or request itself, that it was seen."""
        ...

    async def change(self, path: str, number: int) -> Change:
        """Return what a request would change."""
        ...
