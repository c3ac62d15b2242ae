"""Snapshots and forks of workspaces laid over their base."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.workspaces import shell

from turnout.core.ids import new_run_id
from turnout.errors import SandboxError, SandboxUnavailableError
from turnout.sandbox.base import BaseRef, Command, LayerRef, Limits, Sandbox
from turnout.sandbox.base_layer import Layer
from turnout.sandbox.bubblewrap import BubblewrapDriver
from turnout.sandbox.walls.launch import Staging
from turnout.sandbox.workspace.building import building
from turnout.sandbox.workspace.layers import Layers

pytestmark = pytest.mark.abuse

FILES = {
    "kept.txt": "kept\n",
    "changed.txt": "before\n",
    "deleted.txt": "gone\n",
    "program.sh": "#!/bin/sh\n",
    "becomes-folder": "file\n",
    "becomes-file/inner.txt": "inner\n",
    "becomes-link/inner.txt": "inner\n",
    "again/old.txt": "old\n",
    "again/sub/old.txt": "old\n",
    "again/sub/stays.txt": "stays\n",
    "removed/a/b.txt": "b\n",
    "whole/1.txt": "1\n",
    "whole/2.txt": "2\n",
}
CHANGES = r"""
echo after > changed.txt
rm deleted.txt
chmod 755 program.sh; touch -d '2001-02-03 04:05:06.789' program.sh
rm becomes-folder; mkdir becomes-folder; echo new > becomes-folder/new.txt
rm -r becomes-file; echo file > becomes-file
rm -r becomes-link; ln -s kept.txt becomes-link
rm -r again; mkdir -p again/sub; echo new > again/new.txt; echo stays > again/sub/stays.txt
rm -r removed
rm whole/1.txt
ln -s ../outside dangling; mkdir -p empty/deeper
echo one > first; ln first second; ln first empty/third
mkfifo pipe; truncate -s 100M sparse; printf x | dd of=sparse bs=1 seek=50000000 conv=notrunc 2>&1
printf odd > "$(printf 'new\nline')"; printf odd > "$(printf '\377\376')"; printf odd > -- -rf
printf odd > "$(printf 'n%.0s' $(seq 255))"
mkdir closed; echo secret > closed/file; chmod 000 closed/file closed
echo private > private; chmod 600 private
chmod 700 whole
"""
SEEN = r"""
cd /repo
find . -type d -printf '%P %m %T@\0' | sort -z | tr '\0' '\n'
find . ! -type d -printf '%P %y %m %n %T@ %s %l\0' | sort -z | tr '\0' '\n'
find . -type f -readable -print0 | sort -z | xargs -0 sha256sum -z | tr '\0' '\n'
ls -A /venv
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> BubblewrapDriver:
    """Return one driver, so that the walls are tried once."""
    return BubblewrapDriver(tmp_path_factory.mktemp("state"))


@pytest.fixture
async def base(driver: BubblewrapDriver) -> BaseRef:
    """Make a base by hand; skipped aloud where no tree can be laid over another."""
    try:
        facts = (await driver.probe()).facts
    except SandboxUnavailableError as error:
        pytest.skip(str(error))
    why = next((why for name, holds, why in facts if name == "overlay workspace" and not holds), "")
    if why:
        pytest.skip(f"no overlay: {why}")
    return hand_made(driver.state_dir, FILES)


def hand_made(state: Path, files: dict[str, str] | None) -> BaseRef:
    """Make a base layer without a history, of `files` or without a tree."""
    key = "f" * 32 if files else "e" * 32
    tree, environment = state / "hand-made" / "tree", state / "hand-made" / "environment"
    environment.mkdir(parents=True, exist_ok=True)
    (environment / "pyvenv.cfg").write_text("home = /usr/bin\n")
    for path, text in (files or {}).items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)
    layer = Layer(commit="", history=None, tree=tree if files else None, environment=environment)
    manifest = state / "layers" / f"{key}.json"
    manifest.parent.mkdir(exist_ok=True)
    manifest.write_text(layer.model_dump_json())
    return BaseRef(key, "", ())


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


async def test_a_layer_holds_every_kind_of_change(driver: BubblewrapDriver, base: BaseRef) -> None:
    """Files, folders, links, modes, times and what was removed: the copy looks the same."""
    async with started(driver, base) as sandbox:
        await shell(sandbox, CHANGES)
        before = await shell(sandbox, SEEN)
        layer = await sandbox.snapshot()
        assert await shell(sandbox, SEEN) == before
    async with started(driver, base, layer) as copy:
        assert await shell(copy, SEEN) == before
        await shell(copy, "chmod 700 closed; test -f closed/file; test ! -e again/old.txt")


async def test_a_layer_lies_on_another(driver: BubblewrapDriver, base: BaseRef) -> None:
    """A fork of a fork holds the changes of all, and none that came later elsewhere."""
    async with started(driver, base) as first:
        await shell(first, "echo 1 > one; rm -r again; rm kept.txt; echo 1 > /venv/one")
        second = await first.fork(new_run_id())
        await shell(first, "echo later > one")
    try:
        await shell(second, "mkdir again; echo 2 > again/two; echo kept > kept.txt; rm -r whole")
        layer = await second.snapshot()
        seen = await shell(second, SEEN)
    finally:
        await second.close()
    assert len(layer.stack) == 2
    async with started(driver, base, layer) as third:
        assert await shell(third, SEEN) == seen
        assert await shell(third, "cat one /venv/one again/two; ls again") == "1\n1\n2\ntwo"
        assert await shell(third, "ls -d whole removed || true") == "removed"


async def test_what_is_frozen_does_not_change_a_layer(
    driver: BubblewrapDriver, base: BaseRef
) -> None:
    """A process that writes all the time stands still meanwhile and goes on afterwards."""
    writing = "while :; do n=$((n + 1)); echo $n > a; echo $n > b; done"
    async with started(driver, base) as sandbox:
        running = asyncio.create_task(sandbox.run(Command(shell=writing, timeout=60)))
        await shell(sandbox, "until [ -s b ]; do :; done")
        layer = await sandbox.snapshot()
        await shell(sandbox, "n=$(cat b); until [ $(cat b) -gt $((n + 10)) ]; do :; done")
        running.cancel()
    async with started(driver, base, layer) as copy:
        first, second = (await shell(copy, "paste -d' ' a b")).split(" ")
        assert int(first or second) - int(second or first) in (0, 1)


async def test_equal_changes_are_one_layer(driver: BubblewrapDriver, base: BaseRef) -> None:
    """Its key says what is in it; another base does not take it."""
    async with started(driver, base) as sandbox:
        await shell(sandbox, "echo x > x")
        layers = [await sandbox.snapshot() for _ in range(2)]
    assert layers[0] == layers[1]
    assert layers[0].size_bytes == 2
    other = hand_made(driver.state_dir, None)
    with pytest.raises(SandboxError, match="not one of this base"):
        await driver.create(new_run_id(), other, Limits(), layer=layers[0])


async def test_a_layer_of_nothing_or_of_another_base_is_refused(
    driver: BubblewrapDriver, base: BaseRef
) -> None:
    """No key leads out of the folder of layers."""
    for layer in (
        LayerRef("0" * 32, base.key, ("0" * 32,), 0),
        LayerRef("0" * 32, "other", ("0" * 32,), 0),
        LayerRef("x", base.key, ("../../etc",), 0),
        LayerRef("x", base.key, (), 0),
    ):
        with pytest.raises(SandboxError, match="layer"):
            await driver.create(new_run_id(), base, Limits(), layer=layer)


async def test_a_base_without_a_tree_begins_empty(driver: BubblewrapDriver, base: BaseRef) -> None:
    """It keeps what was made in it like any other."""
    empty = hand_made(driver.state_dir, None)
    async with started(driver, empty) as sandbox:
        assert await shell(sandbox, "ls -A /repo /workspace/") == "/repo:\n\n/workspace/:"
        await sandbox.write("new.txt", b"new")
        layer = await sandbox.snapshot()
        with pytest.raises(SandboxError, match="no commit"):
            await sandbox.diff()
    async with started(driver, empty, layer) as copy:
        assert (await copy.read("new.txt")).data == b"new"


async def test_a_path_too_deep_to_be_kept_is_said(driver: BubblewrapDriver, base: BaseRef) -> None:
    """The error names the reason, nothing is left half-made, and the sandbox goes on."""
    deep = "for n in $(seq 40); do mkdir $(printf 'q%.0s' $(seq 200)); cd q*; done"
    async with started(driver, base) as sandbox:
        await shell(sandbox, deep)
        with pytest.raises(SandboxError, match="File name too long"):
            await sandbox.snapshot()
        assert await shell(sandbox, "echo alive") == "alive"
    assert not list((driver.state_dir / "kept").glob(".*"))


async def test_a_layer_that_is_removed_is_gone(driver: BubblewrapDriver, base: BaseRef) -> None:
    """Whatever modes its folders have; what lies beneath it stays."""
    async with started(driver, base) as sandbox:
        await shell(sandbox, "mkdir -p closed/in; echo x > closed/in/x; chmod 000 closed/in closed")
        layer = await sandbox.snapshot()
    layers = Layers(driver.state_dir)
    assert len(layers.folders(base, layer)) == 1
    await layers.remove(layer)
    with pytest.raises(SandboxError, match="no longer there"):
        await driver.create(new_run_id(), base, Limits(), layer=layer)
    assert not list(layers.folder.glob("*gone*"))


async def test_half_made_layers_of_dead_services_are_reaped(
    driver: BubblewrapDriver, base: BaseRef
) -> None:
    """Those that are being made stay."""
    folder = Layers(driver.state_dir).folder
    folder.mkdir(exist_ok=True)
    (folder / ".layer-abandoned" / "layer").mkdir(parents=True)
    async with building(folder, "layer") as unfinished:
        await driver.reap(frozenset())
        assert unfinished.is_dir()
        assert not (folder / ".layer-abandoned").exists()
    assert not unfinished.exists()


async def without_overlay(driver: BubblewrapDriver, staging: Staging) -> BubblewrapDriver:
    """Return a driver that believes that no tree can be laid over another."""
    walls = await driver._found()
    other = BubblewrapDriver(driver.state_dir)
    footing = replace(walls.footing, staging=staging, launcher=other._launcher)
    other._walls = replace(walls, footing=footing, unstaged="it is not tried here")
    return other


async def test_where_no_tree_can_be_laid_over_another_it_is_copied(
    driver: BubblewrapDriver, base: BaseRef
) -> None:
    """What was changed is told from the base all the same, by looking at all of it."""
    other = await without_overlay(driver, "folders")
    async with started(other, base) as sandbox:
        assert await shell(sandbox, "touch /venv/x 2>/dev/null || echo refused") == "refused"
        await shell(sandbox, CHANGES)
        seen = await shell(sandbox, SEEN)
        layer = await sandbox.snapshot()
        assert await shell(sandbox, SEEN) == seen
    async with started(other, base, layer) as copy:
        assert await shell(copy, SEEN) == seen
        await shell(copy, "rm -r becomes-folder; ln -s / becomes-folder; rm changed.txt")
        seen = await shell(copy, SEEN)
        layer = await copy.snapshot()
    async with started(other, base, layer) as again:
        assert await shell(again, SEEN) == seen
    with pytest.raises(SandboxError, match="no longer there"):
        await driver.create(new_run_id(), base, Limits(), layer=layer)


async def test_without_a_stage_root_reaches_no_folder_of_its_own(
    driver: BubblewrapDriver, base: BaseRef
) -> None:
    """It is said what to do; an ordinary user's folders are in reach."""
    other = await without_overlay(driver, "none")
    if os.geteuid() == 0:
        with pytest.raises(SandboxUnavailableError, match="only root may enter"):
            await other.create(new_run_id(), base, Limits())
        return
    async with started(other, base) as sandbox:
        assert (await sandbox.read("again/sub/old.txt")).data == b"old\n"
