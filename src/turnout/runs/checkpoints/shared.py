"""Checkpoints that any machine restores, from a store that all of them reach."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

from turnout.core.ids import RunId
from turnout.core.service.checkpoints import Part
from turnout.errors import NotFoundError, SandboxError
from turnout.runs.checkpoints.ports import Vault
from turnout.sandbox.base import BaseRef, LayerRef
from turnout.sandbox.carrying.port import LayerShelf

__all__ = ["SharedCheckpoints"]

_MIB = 1 << 20


class _TooLargeError(Exception):
    """A part holds more than may be kept."""


@dataclass(frozen=True, slots=True)
class SharedCheckpoints:
    """Puts the layers of this machine into a vault, and those of others onto its shelf."""

    shelf: LayerShelf
    vault: Vault
    most_bytes: int
    """Of one layer."""

    async def keep(self, run_id: RunId, epoch: int, layer: LayerRef) -> str:
        """Put all that it takes to start on a layer into the vault, as far as it is not there."""
        if layer.size_bytes > self.most_bytes:
            return self._too_large
        try:
            likeness = self.shelf.likeness(layer.base_key)
            for key in self.shelf.parts(layer):
                part = Part(run_id, epoch, key, likeness)
                if await self.vault.likeness(run_id, key) is None:
                    await self.vault.put(part, self._bounded(self.shelf.read(key)))
                self.shelf.sent(key)
        except _TooLargeError:
            return self._too_large
        except SandboxError as error:
            return error.message
        return ""

    async def settle(self, run_id: RunId, epoch: int, layer: LayerRef) -> None:
        """Drop what neither the layer is nor lies beneath it."""
        await self.vault.keep_only(run_id, epoch, self.shelf.parts(layer))

    async def restore(self, run_id: RunId, base: BaseRef, layer: LayerRef) -> LayerRef:
        """Return a layer as it lies on a base here, fetched from the vault where need be."""
        if self.shelf.holds(base, layer):
            return layer
        likeness = self.shelf.likeness(base.key)
        for key in self.shelf.parts(layer):
            found = await self.vault.likeness(run_id, key)
            if found is None:
                raise SandboxError("What the workspace held was kept on another machine alone.")
            if not likeness or found != likeness:
                raise SandboxError("The workspace stood on another base than this machine has.")
            if not self.shelf.has(key):
                await self._fetch(run_id, key)
        return replace(layer, base_key=base.key)

    async def forget(self, run_id: RunId) -> None:
        """Drop all that was put of a run."""
        await self.vault.forget(run_id)

    @property
    def _too_large(self) -> str:
        return f"It is larger than {self.most_bytes // _MIB} MiB (`checkpoint_mb`)."

    async def _fetch(self, run_id: RunId, key: str) -> None:
        try:
            await self.shelf.receive(key, self.vault.get(run_id, key))
        except NotFoundError as error:
            raise SandboxError("What the workspace held is no longer kept.") from error

    async def _bounded(self, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        left = self.most_bytes
        async for data in stream:
            left -= len(data)
            if left < 0:
                raise _TooLargeError
            yield data
