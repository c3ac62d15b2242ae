"""What the policies need from outside."""

from collections.abc import Sequence
from typing import Protocol

from turnout.core.govern.revisions import PolicyRevision

__all__ = ["PolicyStore"]


class PolicyStore(Protocol):
    """Every revision of every policy; none is ever changed or removed."""

    async def add(self, revisions: Sequence[PolicyRevision]) -> None:
        """Write revisions durably, all or none.

        `ConflictError` where one does not follow the newest of its policy.
        """
        ...

    async def newest(self) -> Sequence[PolicyRevision]:
        """Return the newest revision of every policy, by name."""
        ...

    async def history(self, name: str, *, limit: int = 100) -> Sequence[PolicyRevision]:
        """Return a policy's revisions, newest first; empty where there is none."""
        ...

    async def get(self, name: str, number: int) -> PolicyRevision | None:
        """Return one revision; None where there is none."""
        ...

    async def count(self) -> int:
        """Return how many revisions there are of all policies; it grows with every change."""
        ...
