"""Workspaces that go on where another machine has left them: two state folders, one stream."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.test_bubblewrap_layers import CHANGES, FILES, SEEN, hand_made
from tests.integration.workspaces import shell

from turnout.core.ids import new_run_id
from turnout.errors import SandboxError, SandboxUnavailableError
from turnout.sandbox.base import BaseRef, LayerRef, Limits, Sandbox
from turnout.sandbox.bubblewrap import BubblewrapDriver
from turnout.sandbox.carrying.stacked import StackedShelf
from turnout.sandbox.workspace.layers import Layers

pytestmark = pytest.mark.abuse


@asynccontextmanager
async def started(
    driver: BubblewrapDriver, base: BaseRef, layer: LayerRef | None = None
) -> AsyncIterator[Sandbox]:
    """Start a sandbox and end it."""
    sandbox = await driver.create(new_run_id(), base, Limits(), layer=layer)
    try:
        yield sandbox
    finally:
        await sandbox.close()


async def carry(source: StackedShelf, target: StackedShelf, layer: LayerRef) -> None:
    """Hand a layer and all that it lies on to another machine."""
    for key in source.parts(layer):
        if not target.has(key):
            await target.receive(key, source.read(key))


@pytest.fixture
async def machines(tmp_path: Path) -> AsyncIterator[tuple[BubblewrapDriver, BubblewrapDriver]]:
    """Hand out two drivers that share nothing; skipped aloud where no tree lies over another."""
    drivers = [BubblewrapDriver(tmp_path / name, streams=True) for name in ("one", "two")]
    try:
        facts = (await drivers[0].probe()).facts
    except SandboxUnavailableError as error:
        pytest.skip(str(error))
    why = next((why for name, holds, why in facts if name == "overlay workspace" and not holds), "")
    if why:
        pytest.skip(f"no overlay: {why}")
    yield drivers[0], drivers[1]
    for driver in drivers:
        await driver.close()


async def test_a_workspace_goes_on_on_another_machine_and_comes_back(
    machines: tuple[BubblewrapDriver, BubblewrapDriver],
) -> None:
    """Every kind of change, over two machines and in two layers, as if it had stayed on one.

    A stream is dropped once others have it: what was laid down of it stays.
    """
    first, second = machines
    here, there = (hand_made(driver.state_dir, FILES) for driver in machines)
    for driver in machines:
        # As a checkout of one commit has them on every machine.
        for path in (driver.state_dir / "hand-made").rglob("*"):
            os.utime(path, (1_000_000_000, 1_000_000_000))
    one, two = StackedShelf(first), StackedShelf(second)
    async with started(first, here) as sandbox:
        await shell(sandbox, CHANGES)
        before = await shell(sandbox, SEEN)
        lower = await sandbox.snapshot()
    await carry(one, two, lower)
    one.sent(lower.key)
    with pytest.raises(SandboxError, match="no stream"):
        one.read(lower.key)
    async with started(second, there, replace(lower, base_key=there.key)) as sandbox:
        assert await shell(sandbox, SEEN) == before
        await shell(sandbox, "rm first; echo more > added.txt; chmod 600 changed.txt")
        after = await shell(sandbox, SEEN)
        upper = await sandbox.snapshot()
    assert upper.stack == (lower.key, upper.key)
    await carry(two, one, upper)
    async with started(first, here, replace(upper, base_key=here.key)) as sandbox:
        assert await shell(sandbox, SEEN) == after


async def test_a_layer_that_was_there_without_its_stream_gets_one(
    machines: tuple[BubblewrapDriver, BubblewrapDriver],
) -> None:
    """Made by a service that shared nothing, it can be handed on when it is made again."""
    driver, _ = machines
    base = hand_made(driver.state_dir, FILES)
    async with started(driver, base) as sandbox:
        await shell(sandbox, "echo x > x.txt")
        layer = await sandbox.snapshot()
        shelf = StackedShelf(driver)
        shelf.sent(layer.key)
        assert (await sandbox.snapshot()).key == layer.key
        assert b"".join([piece async for piece in shelf.read(layer.key)])


async def test_what_is_no_stream_of_ours_is_refused_as_it_is_laid_down(
    machines: tuple[BubblewrapDriver, BubblewrapDriver],
) -> None:
    """In a sandbox that has nothing else; the host looks into none of it."""
    driver, _ = machines
    base = hand_made(driver.state_dir, FILES)

    async def nonsense() -> AsyncIterator[bytes]:
        yield b"F" + bytes(200)

    key = "a" * 32
    await Layers(driver.state_dir).receive(key, nonsense())
    with pytest.raises(SandboxError, match="could not be laid down"):
        await driver.create(new_run_id(), base, Limits(), layer=LayerRef(key, base.key, (key,), 1))
    with pytest.raises(SandboxError, match="no name of ours"):
        await Layers(driver.state_dir).receive("../a", nonsense())
