"""Many sandboxes, at once and one after another, and callers that go away: nothing is left."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from tests.integration.faults import (
    Bench,
    Traces,
    adopting,
    descendants,
    groups,
    resident_bytes,
    settled,
    spread,
    three_hundred_files,
)

from turnout.core.ids import new_run_id
from turnout.sandbox.base import Command
from turnout.sandbox.bubblewrap import BubblewrapDriver

pytestmark = pytest.mark.chaos


@pytest.fixture
async def bench(own_state: Path, tmp_path: Path) -> AsyncIterator[Bench]:
    """Prepare a repository, where every process that is left over will be seen."""
    repository = three_hundred_files(tmp_path / "source")
    with adopting():
        driver = BubblewrapDriver(own_state)
        yield await Bench.made(driver, repository, own_state)
        await driver.close()


async def test_sandboxes_by_the_dozen_leave_nothing(bench: Bench, full: bool) -> None:
    """Neither processes, mounts, groups, descriptors and entries nor memory."""
    used: set[Path] = set()

    async def one() -> None:
        async with bench.opened() as sandbox:
            assert (await sandbox.run(Command(("true",)))).ok
            used.update(groups(bench.state))

    async def many(count: int) -> None:
        for _ in range(count // 4):
            await asyncio.gather(*(one() for _ in range(4)))

    await many(20)
    before, memory = Traces.seen(bench.state), resident_bytes()
    await many(200 if full else 60)
    await settled(before, bench.state)
    assert not [group for group in used if group.exists()]
    assert resident_bytes() - memory < (16 if full else 6) << 20
    assert len(asyncio.all_tasks()) == 1


async def test_twenty_sandboxes_start_at_once(bench: Bench) -> None:
    """Each has a workspace of its own; a few seconds do for all on any machine."""
    before = Traces.seen(bench.state)
    begin = time.monotonic()
    sandboxes = await asyncio.gather(*(bench.create() for _ in range(20)))
    try:
        writes = [each.write("mine", b"%d" % n) for n, each in enumerate(sandboxes)]
        await asyncio.gather(*writes)
        seen = await asyncio.gather(*(each.read("mine") for each in sandboxes))
        assert time.monotonic() - begin < 20
        assert [blob.data for blob in seen] == [b"%d" % n for n in range(20)]
    finally:
        await asyncio.gather(*(each.close() for each in sandboxes))
    await settled(before, bench.state)


async def cancelled(action: Callable[[], Awaitable[object]], at: float) -> None:
    """Do something, and stop waiting for it after so many seconds."""
    task = asyncio.ensure_future(action())
    await asyncio.sleep(at)
    task.cancel()
    async with asyncio.timeout(20):
        await asyncio.wait([task])


async def test_a_start_that_is_cancelled_leaves_nothing(bench: Bench) -> None:
    """At whatever point the caller goes away."""
    async with bench.opened():
        pass
    before = Traces.seen(bench.state)

    async def create_and_close() -> None:
        async with bench.opened() as sandbox:
            await sandbox.run(Command(("true",)))

    for moment in await spread(create_and_close, 24):
        await cancelled(create_and_close, moment)
        await settled(before, bench.state)


@pytest.mark.parametrize("call", ["exec", "read", "diff", "snapshot", "fork"])
async def test_a_call_that_is_cancelled_leaves_a_usable_sandbox(bench: Bench, call: str) -> None:
    """At whatever point the caller goes away, later calls get their own answers."""
    async with bench.opened() as sandbox:
        await sandbox.write("new.txt", b"x" * 100_000)

        async def fork() -> None:
            await (await sandbox.fork(new_run_id())).close()

        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "exec": lambda: sandbox.run(Command(shell="cat new.txt; sleep 0.05; cat new.txt")),
            "read": lambda: sandbox.read("new.txt"),
            "diff": sandbox.diff,
            "snapshot": sandbox.snapshot,
            "fork": fork,
        }
        moments = await spread(calls[call], 10)
        before = descendants()
        for moment in moments:
            await cancelled(calls[call], moment)
            said = await sandbox.run(
                Command(shell="cat /proc/[0-9]*/comm | sort | uniq -c; echo ok")
            )
            assert said.stdout.endswith(b"ok\n")
            assert b"sleep" not in said.stdout
        assert (await sandbox.diff()).files[0].path == "new.txt"
        assert descendants() == before


async def test_processes_of_a_living_sandbox_are_seen(bench: Bench) -> None:
    """Otherwise what is said above of processes would mean nothing."""
    before = descendants()
    async with bench.opened():
        assert any("resident" in line for line in descendants() - before)
    assert not any("resident" in line for line in descendants())
