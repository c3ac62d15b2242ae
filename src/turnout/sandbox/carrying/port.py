"""What can hand the layers of one machine to another."""

from collections.abc import AsyncIterator
from typing import Protocol

from turnout.sandbox.base import BaseRef, LayerRef

__all__ = ["LayerShelf"]


class LayerShelf(Protocol):
    """The layers of this machine's driver, by the keys that a `LayerRef` names.

    Bytes are passed on unread: what a sandbox has changed is looked at inside sandboxes alone.
    """

    def likeness(self, base_key: str) -> str:
        """Return what bases of all machines share that are alike; empty where it is not known.

        A layer of one of them lies on each.
        """
        ...

    def parts(self, layer: LayerRef) -> tuple[str, ...]:
        """Return the keys of all that it takes to start on a layer, lowest first."""
        ...

    def holds(self, base: BaseRef, layer: LayerRef) -> bool:
        """Whether a sandbox can be started on a layer here as it is."""
        ...

    def has(self, key: str) -> bool:
        """Whether a part is here."""
        ...

    def read(self, key: str) -> AsyncIterator[bytes]:
        """Yield a part; `SandboxError` where it cannot be handed on."""
        ...

    def sent(self, key: str) -> None:
        """Drop what a part was kept for beside its use here: others have it."""
        ...

    async def receive(self, key: str, stream: AsyncIterator[bytes]) -> None:
        """Keep a part that another machine has made, whole or not at all."""
        ...
