"""Checkpoints in memory."""

from collections.abc import AsyncIterator, Collection

from turnout.core.ids import RunId
from turnout.core.service.checkpoints import Part
from turnout.errors import NotFoundError

__all__ = ["MemoryVault"]


class MemoryVault:
    """Parts by run and key."""

    def __init__(self) -> None:
        self.parts: dict[tuple[RunId, str], tuple[Part, bytes]] = {}
        """Everything that is kept."""

    async def likeness(self, run_id: RunId, key: str) -> str | None:
        """Return what a part lies on; None where it is not kept."""
        found = self.parts.get((run_id, key))
        return None if found is None else found[0].likeness

    async def put(self, part: Part, stream: AsyncIterator[bytes]) -> None:
        """Keep a part, whole or not at all; one that is there stays."""
        data = b"".join([piece async for piece in stream])
        self.parts.setdefault((part.run_id, part.key), (part, data))

    async def get(self, run_id: RunId, key: str) -> AsyncIterator[bytes]:
        """Yield a part; `NotFoundError` where it is not kept."""
        found = self.parts.get((run_id, key))
        if found is None:
            raise NotFoundError(f"No checkpoint {key[:12]} of {run_id} is kept.")
        yield found[1]

    async def keep_only(self, run_id: RunId, epoch: int, keys: Collection[str]) -> None:
        """Drop the other parts that this segment of a run, or an earlier one, has put."""
        self.parts = {
            at: kept
            for at, kept in self.parts.items()
            if at[0] != run_id or at[1] in keys or kept[0].epoch > epoch
        }

    async def forget(self, run_id: RunId) -> None:
        """Drop all parts of a run."""
        self.parts = {at: kept for at, kept in self.parts.items() if at[0] != run_id}
