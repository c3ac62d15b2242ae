"""Layers that are one file each, handed from one state folder to another."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from turnout.errors import SandboxError
from turnout.sandbox.base import BaseRef, LayerRef
from turnout.sandbox.base_layer import Layer
from turnout.sandbox.carrying.whole import WholeShelf

BASE = BaseRef("base", "", ())
LAYER = LayerRef("aa11", "base", ("0000", "aa11"), 5)


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    """Yield them."""
    for part in parts:
        yield part


async def test_a_layer_alone_is_handed_on(tmp_path: Path) -> None:
    """It holds all that those beneath it held; the file stays where sandboxes begin on it."""
    one, two = WholeShelf(tmp_path / "one"), WholeShelf(tmp_path / "two")
    assert one.parts(LAYER) == ("aa11",)
    await one.receive("aa11", pieces(b"he", b"llo"))
    one.sent("aa11")
    await two.receive("aa11", one.read("aa11"))
    assert b"".join([piece async for piece in two.read("aa11")]) == b"hello"
    assert two.holds(BASE, LAYER)
    assert not two.holds(BaseRef("other", "", ()), LAYER)


async def test_a_stream_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    """Nor does a name that leads elsewhere; what is not there is told of."""
    shelf = WholeShelf(tmp_path)

    async def broken() -> AsyncIterator[bytes]:
        yield b"x"
        raise SandboxError("It broke.")

    with pytest.raises(SandboxError, match="broke"):
        await shelf.receive("aa11", broken())
    assert [path.name for path in (tmp_path / "snapshots").iterdir()] == []
    with pytest.raises(SandboxError, match="no longer there"):
        shelf.read("aa11")
    with pytest.raises(SandboxError, match="no name of ours"):
        await shelf.receive("../aa11", pieces(b"x"))


def test_what_a_base_is_like_stands_in_its_manifest(tmp_path: Path) -> None:
    """One that was made before that was noted is like no other; one that is gone is told of."""
    shelf = WholeShelf(tmp_path)
    (tmp_path / "layers").mkdir()
    layer = Layer(commit="c", history=None, tree=None, environment=tmp_path)
    (tmp_path / "layers" / "old.json").write_text(layer.model_dump_json(exclude={"likeness"}))
    layer.likeness = "alike"
    (tmp_path / "layers" / "new.json").write_text(layer.model_dump_json())
    assert (shelf.likeness("old"), shelf.likeness("new")) == ("", "alike")
    with pytest.raises(SandboxError, match="no longer there"):
        shelf.likeness("none")
