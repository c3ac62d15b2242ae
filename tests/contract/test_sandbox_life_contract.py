"""How every kind of sandbox begins, is frozen, kept and ended."""

import asyncio
import hashlib
import itertools
from dataclasses import replace

import pytest
import pytest_asyncio
from tests.contract.sandbox_kinds import LIMITS, Kind, empty_commit, nap, nappers, started

from turnout.core.ids import RunId, new_run_id
from turnout.errors import SandboxDiedError, SandboxError
from turnout.sandbox.base import BaseRef, Command, LayerRef, Sandbox

pytestmark = pytest.mark.asyncio(loop_scope="module")

RUN = RunId("run-0000000000c0")
TICKING = Command(
    shell="(while :; do echo $EPOCHREALTIME; sleep 0.01; done >ticks) &", background=True
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def base(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> BaseRef:
    """Prepare a commit without files."""
    return await kind.driver.prepare(empty_commit(tmp_path_factory.mktemp("repository")))


@pytest.fixture
def runs(kind: Kind) -> None:
    """Leave those out that only answer commands."""
    if kind.scripted:
        pytest.skip("commands are answered, not run")


async def longest_silence(sandbox: Sandbox) -> float:
    """Return the longest time between two ticks, in seconds."""
    ticks = [float(line) for line in (await sandbox.read("ticks")).data.split()]
    return max(later - sooner for sooner, later in itertools.pairwise(ticks))


async def test_a_sandbox_knows_its_run(kind: Kind) -> None:
    """It names the run it was made for and the walls that hold."""
    sandbox = await kind.start(RUN, LIMITS)
    assert sandbox.run_id == RUN
    assert sandbox.isolation
    assert sandbox.connections() == ()
    await sandbox.close()


async def test_a_driver_says_what_holds(kind: Kind) -> None:
    """Each wall is named, with a reason where it does not hold."""
    found = await kind.driver.probe()
    assert found.driver == kind.driver.name
    assert found.usable
    assert found.isolation
    assert all(name and (holds or why) for name, holds, why in found.facts)


async def test_a_closed_sandbox_is_gone(sandbox: Sandbox) -> None:
    """Closing twice is harmless; every other call says that it is gone."""
    await sandbox.close()
    await sandbox.close()
    for call in (
        sandbox.read("a"),
        sandbox.write("a", b""),
        sandbox.run(Command(("true",))),
        sandbox.list(),
        sandbox.kill_all(),
        sandbox.pause(),
        sandbox.resume(),
    ):
        with pytest.raises(SandboxDiedError):
            await call


async def test_a_frozen_sandbox_is_thawed_by_any_call(sandbox: Sandbox) -> None:
    """Freezing and thawing may be repeated, and nobody has to thaw it."""
    await sandbox.write("a", b"1")
    await sandbox.pause()
    await sandbox.pause()
    assert (await sandbox.read("a")).data == b"1"
    await sandbox.pause()
    assert (await sandbox.run(Command(("true",)))).ok
    await sandbox.pause()
    await sandbox.resume()
    await sandbox.resume()
    assert (await sandbox.list()).paths == ("a",)
    await sandbox.pause()
    await sandbox.kill_all()


async def test_frozen_time_is_counted(sandbox: Sandbox) -> None:
    """Of its age, what it was frozen is told apart; asking does not thaw it."""
    await sandbox.pause()
    await asyncio.sleep(0.05)
    frozen = (await sandbox.usage()).frozen_seconds
    assert frozen >= 0.05
    await asyncio.sleep(0.02)
    assert (await sandbox.usage()).frozen_seconds >= frozen + 0.02
    await sandbox.resume()
    after = await sandbox.usage()
    assert (await sandbox.usage()).frozen_seconds == after.frozen_seconds
    assert after.frozen_seconds < after.wall_seconds


@pytest.mark.usefixtures("runs")
async def test_nothing_moves_while_it_is_frozen(sandbox: Sandbox) -> None:
    """What was left in the background stands still, and goes on afterwards."""
    await sandbox.run(TICKING)
    await sandbox.pause()
    await asyncio.sleep(0.3)
    await sandbox.resume()
    await sandbox.run(Command(("sleep", "0.1")))
    assert await longest_silence(sandbox) > 0.25


@pytest.mark.usefixtures("runs")
async def test_time_limits_stand_still_while_it_is_frozen(sandbox: Sandbox) -> None:
    """A command is not ended for the time that it could not use."""
    running = asyncio.create_task(sandbox.run(Command(shell="sleep 0.3; echo done", timeout=0.9)))
    await asyncio.sleep(0.1)
    await sandbox.pause()
    await asyncio.sleep(1.2)
    assert not running.done()
    await sandbox.resume()
    result = await running
    assert (result.exit.reason, result.stdout) == ("exited", b"done\n")
    assert result.exit.wall_seconds > 1.2


@pytest.mark.usefixtures("runs")
async def test_a_frozen_command_can_be_cancelled(sandbox: Sandbox) -> None:
    """Nobody has to wait for it to be thawed."""
    items = sandbox.exec(Command(shell=f"echo up; exec {nap(5)}"))
    await anext(items)
    await sandbox.pause()
    await items.aclose()
    assert await nappers(sandbox, 5) == 0


@pytest.mark.usefixtures("runs")
async def test_an_idle_sandbox_is_frozen(kind: Kind) -> None:
    """After a time without a call nothing inside uses the machine; the next call finds it well."""
    async with started(kind, replace(LIMITS, idle_seconds=0.05)) as sandbox:
        await sandbox.run(TICKING)
        for _ in range(500):
            if (await sandbox.usage()).frozen_seconds > 0.3:
                break
            await asyncio.sleep(0.02)
        await sandbox.run(Command(("sleep", "0.1")))
        assert await longest_silence(sandbox) > 0.25
        frozen = (await sandbox.usage()).frozen_seconds
        await sandbox.run(Command(("sleep", "0.2")))
        assert (await sandbox.usage()).frozen_seconds < frozen + 0.1


@pytest.mark.usefixtures("runs")
async def test_a_lifetime_ends_whatever_runs(kind: Kind) -> None:
    """Everybody who waits is told why."""
    async with started(kind, replace(LIMITS, lifetime_seconds=0.5)) as sandbox:
        with pytest.raises(SandboxDiedError, match="lived"):
            await sandbox.run(Command(("sleep", "30")))
        with pytest.raises(SandboxDiedError, match="lived"):
            await sandbox.read("a")


async def test_a_workspace_begins_as_its_commit(kind: Kind, base: BaseRef) -> None:
    """What is changed is the diff, and no other sandbox sees it."""
    sandbox = await kind.driver.create(new_run_id(), base, LIMITS)
    other = await kind.driver.create(new_run_id(), base, LIMITS)
    try:
        assert (await sandbox.diff()).diff == b""
        await sandbox.write("new.txt", b"line\n")
        patch = await sandbox.diff()
        assert [(file.path, file.status) for file in patch.files] == [("new.txt", "added")]
        assert b"+line\n" in patch.diff
        assert (await other.list()).paths == ()
    finally:
        await sandbox.close()
        await other.close()


async def test_a_run_that_nobody_knows_is_spared_while_it_is_ours(kind: Kind) -> None:
    """`reap` is for what dead services left behind."""
    if kind.scripted:
        pytest.skip("the fake has no service that could die")
    async with started(kind) as sandbox:
        await sandbox.write("a", b"")
        assert sandbox.run_id not in await kind.driver.reap(frozenset())
        assert (await sandbox.list()).paths == ("a",)


async def test_a_layer_keeps_what_was_changed(kind: Kind, base: BaseRef) -> None:
    """Sandboxes start on it as often as anybody likes, and on layers of those."""
    if not kind.layers:
        pytest.skip(f"{kind.driver.name} keeps no layers")
    first = await kind.driver.create(new_run_id(), base, LIMITS)
    await first.write("a", b"1")
    await first.write("gone", b"x" * 1000)
    layer = await first.snapshot()
    assert layer.base_key == base.key
    assert layer.stack == (layer.key,)
    assert layer.size_bytes >= 1001
    await first.write("a", b"later")
    second = await kind.driver.create(new_run_id(), base, LIMITS, layer=layer)
    assert (await second.read("a")).data == b"1"
    await remove(second, "gone")
    await second.write("b", b"2")
    upper = await second.snapshot()
    assert upper.stack == (layer.key, upper.key)
    third = await kind.driver.create(new_run_id(), base, LIMITS, layer=upper)
    assert (await third.list()).paths == ("a", "b")
    assert (await third.read("a")).sha256 == hashlib.sha256(b"1").hexdigest()
    assert [file.path for file in (await third.diff()).files] == ["a", "b"]
    for sandbox in (first, second, third):
        await sandbox.close()


async def remove(sandbox: Sandbox, path: str) -> None:
    """Remove a file by a patch, which every kind applies."""
    blob = await sandbox.read(path)
    patch = f"--- a/{path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-{blob.data.decode()}\n"
    result = await sandbox.apply_patch(patch.encode() + b"\\ No newline at end of file\n")
    assert result.applied, result.message


async def test_a_fork_goes_its_own_way(kind: Kind, base: BaseRef) -> None:
    """It begins with the same files; neither sees what the other does afterwards."""
    if not kind.layers:
        pytest.skip(f"{kind.driver.name} keeps no layers")
    origin = await kind.driver.create(new_run_id(), base, LIMITS)
    await origin.write("a", b"1")
    twin = await origin.fork(RUN)
    assert twin.run_id == RUN
    await twin.write("a", b"twin")
    await origin.write("a", b"origin")
    assert (await twin.read("a")).data == b"twin"
    assert (await origin.read("a")).data == b"origin"
    await origin.close()
    assert (await twin.read("a")).data == b"twin"
    await twin.close()


async def test_a_layer_of_another_base_is_refused(kind: Kind, base: BaseRef) -> None:
    """So is one that nobody kept, or that a driver cannot keep."""
    foreign = LayerRef("0" * 32, "another", ("0" * 32,), 1)
    with pytest.raises(SandboxError):
        await kind.driver.create(new_run_id(), base, LIMITS, layer=foreign)


async def test_what_a_kind_cannot_keep_it_says(kind: Kind, sandbox: Sandbox) -> None:
    """An error of the sandbox, and the sandbox goes on."""
    if kind.layers:
        pytest.skip(f"{kind.driver.name} keeps layers")
    with pytest.raises(SandboxError, match="snapshot"):
        await sandbox.snapshot()
    with pytest.raises(SandboxError, match="fork"):
        await sandbox.fork(RUN)
    assert (await sandbox.list()).paths == ()


async def test_a_base_that_is_gone_is_named(kind: Kind) -> None:
    """It has to be prepared again."""
    if kind.scripted:
        pytest.skip("the fake has one base")
    with pytest.raises(SandboxError, match="base layer"):
        await kind.driver.create(new_run_id(), BaseRef("0" * 32, "0" * 40, ()), LIMITS)
