"""Layers that lie over each other in the state folder: those of bubblewrap and of containers."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Protocol

from turnout.sandbox.base import BaseRef, LayerRef
from turnout.sandbox.base_layer import likeness_of
from turnout.sandbox.workspace.layers import Layers

__all__ = ["StackedShelf"]


class _Driver(Protocol):
    @property
    def state_dir(self) -> Path:
        """Folder of what it keeps; known once a base was prepared."""
        ...


class StackedShelf:
    """The layers of such a driver, which keeps their streams."""

    def __init__(self, driver: _Driver) -> None:
        self._driver = driver

    def likeness(self, base_key: str) -> str:
        """Return what alike bases of all machines share; empty where that is not known."""
        return likeness_of(self._driver.state_dir, base_key)

    def parts(self, layer: LayerRef) -> tuple[str, ...]:
        """Return the keys of the layers that it lies on, and its own."""
        return layer.stack

    def holds(self, base: BaseRef, layer: LayerRef) -> bool:
        """Whether it lies on this base, and all of it is here."""
        return layer.base_key == base.key and all(map(self.has, layer.stack))

    def has(self, key: str) -> bool:
        """Whether a layer is here, laid down or as it was received."""
        return self._layers.has(key)

    def read(self, key: str) -> AsyncIterator[bytes]:
        """Yield the stream that a layer was made of; `SandboxError` where it was not kept."""
        return self._layers.stream(key)

    def sent(self, key: str) -> None:
        """Drop the stream of a layer that is laid down."""
        self._layers.drop_stream(key)

    async def receive(self, key: str, stream: AsyncIterator[bytes]) -> None:
        """Keep a stream; it is laid down when a sandbox is started on it."""
        await self._layers.receive(key, stream)

    @property
    def _layers(self) -> Layers:
        return Layers(self._driver.state_dir)
