"""Layers that are each one file with the whole workspace: those of pods."""

from collections.abc import AsyncIterator
from pathlib import Path
from secrets import token_hex

from turnout.errors import SandboxError
from turnout.sandbox.base import BaseRef, LayerRef
from turnout.sandbox.base_layer import likeness_of
from turnout.sandbox.transfer.layers import layer_file
from turnout.sandbox.workspace.folders import private
from turnout.sandbox.workspace.layers import read_pieces, write_pieces

__all__ = ["WholeShelf"]


class WholeShelf:
    """The layers of a state folder of such a driver."""

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir

    def likeness(self, base_key: str) -> str:
        """Return what alike bases of all machines share; empty where that is not known."""
        return likeness_of(self._state_dir, base_key)

    def parts(self, layer: LayerRef) -> tuple[str, ...]:
        """Return its own key: it holds all that those beneath it held."""
        return (layer.key,)

    def holds(self, base: BaseRef, layer: LayerRef) -> bool:
        """Whether it lies on this base, and is here."""
        return layer.base_key == base.key and self.has(layer.key)

    def has(self, key: str) -> bool:
        """Whether a layer is here."""
        return layer_file(self._state_dir, key).is_file()

    def read(self, key: str) -> AsyncIterator[bytes]:
        """Yield a layer; `SandboxError` where it is gone."""
        if not self.has(key):
            raise SandboxError(f"The layer {key[:12]} is no longer there.")
        return read_pieces(layer_file(self._state_dir, key))

    def sent(self, key: str) -> None:
        """Keep it: sandboxes here start on that file."""

    async def receive(self, key: str, stream: AsyncIterator[bytes]) -> None:
        """Keep a layer that another machine has made."""
        file = layer_file(self._state_dir, key)
        private(file.parent)
        made = file.with_name(f".{file.name}-{token_hex(4)}")
        try:
            await write_pieces(made, stream)
            made.rename(file)
        finally:
            made.unlink(missing_ok=True)
