"""What a worker asks of who keeps checkpoints, and what that asks of its store."""

from collections.abc import AsyncIterator, Collection
from typing import Protocol

from turnout.core.ids import RunId
from turnout.core.service.checkpoints import Part
from turnout.sandbox.base import BaseRef, LayerRef

__all__ = ["Checkpoints", "LocalCheckpoints", "Vault"]


class Checkpoints(Protocol):
    """Keeps what a workspace held, so that another segment can begin with it."""

    async def keep(self, run_id: RunId, epoch: int, layer: LayerRef) -> str:
        """Keep a layer for whoever goes on with the run, before it goes on record.

        Returns why only this machine has it; empty where others have it too, or need not.
        """
        ...

    async def settle(self, run_id: RunId, epoch: int, layer: LayerRef) -> None:
        """Drop what was kept before a layer that is on record now."""
        ...

    async def restore(self, run_id: RunId, base: BaseRef, layer: LayerRef) -> LayerRef:
        """Return a layer as sandboxes can begin on it here.

        `SandboxError` where it is not to be had, or lies on another base.
        """
        ...

    async def forget(self, run_id: RunId) -> None:
        """Drop all that was kept of a run that has ended."""
        ...


class LocalCheckpoints:
    """Leaves layers where the driver has put them: on this machine alone."""

    async def keep(self, run_id: RunId, epoch: int, layer: LayerRef) -> str:
        """Do nothing: no other machine needs it."""
        del run_id, epoch, layer
        return ""

    async def settle(self, run_id: RunId, epoch: int, layer: LayerRef) -> None:
        """Do nothing: what is long unused is pruned."""

    async def restore(self, run_id: RunId, base: BaseRef, layer: LayerRef) -> LayerRef:
        """Return the layer; the driver says whether it has it."""
        del run_id, base
        return layer

    async def forget(self, run_id: RunId) -> None:
        """Do nothing: what is long unused is pruned."""


class Vault(Protocol):
    """Keeps parts for all machines; whatever is read or written may be a `StoreError`."""

    async def likeness(self, run_id: RunId, key: str) -> str | None:
        """Return what a part lies on; None where it is not kept."""
        ...

    async def put(self, part: Part, stream: AsyncIterator[bytes]) -> None:
        """Keep a part, whole or not at all; one that is there stays."""
        ...

    def get(self, run_id: RunId, key: str) -> AsyncIterator[bytes]:
        """Yield a part; `NotFoundError` where it is not kept."""
        ...

    async def keep_only(self, run_id: RunId, epoch: int, keys: Collection[str]) -> None:
        """Drop the other parts that this segment of a run, or an earlier one, has put."""
        ...

    async def forget(self, run_id: RunId) -> None:
        """Drop all parts of a run."""
        ...
