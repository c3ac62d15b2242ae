"""Checkpoints of one machine, restored on another."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from turnout.core.ids import RunId
from turnout.errors import SandboxError
from turnout.runs.checkpoints.shared import SharedCheckpoints
from turnout.sandbox.base import BaseRef, LayerRef
from turnout.testing.memory.vault import MemoryVault

RUN = RunId("run-000000000001")
LOWER = LayerRef("lower", "here", ("lower",), 1)
UPPER = LayerRef("upper", "here", ("lower", "upper"), 1)
HERE, THERE = BaseRef("here", "c", ()), BaseRef("there", "c", ())


class Shelf:
    """The layers of one machine, in memory."""

    def __init__(self, likeness: str = "alike", **layers: bytes) -> None:
        self.layers = dict(layers)
        self.dropped: list[str] = []
        self._likeness = likeness

    def likeness(self, base_key: str) -> str:
        """Return the same for every base."""
        return self._likeness

    def parts(self, layer: LayerRef) -> tuple[str, ...]:
        """Return the whole stack."""
        return layer.stack

    def holds(self, base: BaseRef, layer: LayerRef) -> bool:
        """Whether all of it is here."""
        return layer.base_key == base.key and all(map(self.has, layer.stack))

    def has(self, key: str) -> bool:
        """Whether a part is here."""
        return key in self.layers

    async def read(self, key: str) -> AsyncIterator[bytes]:
        """Yield a part."""
        if key not in self.layers:
            raise SandboxError("No stream was kept.")
        yield self.layers[key]

    def sent(self, key: str) -> None:
        """Note it."""
        self.dropped.append(key)

    async def receive(self, key: str, stream: AsyncIterator[bytes]) -> None:
        """Keep it."""
        self.layers[key] = b"".join([piece async for piece in stream])


def machine(shelf: Shelf, vault: MemoryVault, most: int = 1 << 20) -> SharedCheckpoints:
    """Return what keeps checkpoints on a machine."""
    return SharedCheckpoints(shelf, vault, most)


async def test_another_machine_gets_all_that_a_layer_lies_on() -> None:
    """It lies on the base of that machine then, and what is there already is not fetched."""
    vault, shelf = MemoryVault(), Shelf(lower=b"1", upper=b"2")
    first = machine(shelf, vault)
    assert await first.keep(RUN, 1, UPPER) == ""
    assert shelf.dropped == ["lower", "upper"]
    assert await first.restore(RUN, HERE, UPPER) is UPPER
    other = Shelf(lower=b"1")
    restored = await machine(other, vault).restore(RUN, THERE, UPPER)
    assert restored == replace(UPPER, base_key="there")
    assert other.layers == {"lower": b"1", "upper": b"2"}


async def test_only_the_newest_checkpoint_and_what_lies_beneath_it_is_kept() -> None:
    """What was made before goes once a later one is on record, and all of it with the run."""
    vault = MemoryVault()
    first = machine(Shelf(lower=b"1", upper=b"2", other=b"3"), vault)
    await first.keep(RUN, 1, UPPER)
    other = LayerRef("other", "here", ("lower", "other"), 1)
    await first.keep(RUN, 1, other)
    await first.settle(RUN, 1, other)
    assert [key for _, key in vault.parts] == ["lower", "other"]
    await first.forget(RUN)
    assert vault.parts == {}


@pytest.mark.parametrize("likeness", ["unlike", ""])
async def test_a_layer_of_an_unlike_base_is_refused(likeness: str) -> None:
    """Another interpreter, other packages, or a base of which that is not known."""
    vault = MemoryVault()
    await machine(Shelf(lower=b"1"), vault).keep(RUN, 1, LOWER)
    with pytest.raises(SandboxError, match="another base"):
        await machine(Shelf(likeness), vault).restore(RUN, THERE, LOWER)


@pytest.mark.parametrize("layer", [LOWER, replace(LOWER, size_bytes=2 << 20)])
async def test_what_is_too_large_stays_with_its_machine(layer: LayerRef) -> None:
    """Known by its size, or when it is read; elsewhere it is refused, here it is restored."""
    vault = MemoryVault()
    first = machine(Shelf(lower=bytes(2 << 20)), vault)
    assert await first.keep(RUN, 1, layer) == "It is larger than 1 MiB (`checkpoint_mb`)."
    assert await first.restore(RUN, HERE, layer) is layer
    with pytest.raises(SandboxError, match="on another machine alone"):
        await machine(Shelf(), vault).restore(RUN, THERE, layer)


async def test_a_layer_whose_stream_is_gone_is_told_of() -> None:
    """It is no failure of the run."""
    assert await machine(Shelf(), MemoryVault()).keep(RUN, 1, LOWER) == "No stream was kept."
