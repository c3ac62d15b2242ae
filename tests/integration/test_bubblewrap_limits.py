"""Attempts to wear the host out from a bubblewrap sandbox, or to outlive a command."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from tests.sandboxes import MIB, alive, python, said, started

from turnout.sandbox.base import Command
from turnout.sandbox.bubblewrap import BubblewrapDriver, BubblewrapSandbox

pytestmark = pytest.mark.abuse


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> BubblewrapDriver:
    """Return one driver, so that the walls are tried once."""
    return BubblewrapDriver(tmp_path_factory.mktemp("state"))


@pytest.fixture
async def sandbox(driver: BubblewrapDriver) -> AsyncIterator[BubblewrapSandbox]:
    """Start a small sandbox."""
    async with started(driver) as each:
        yield each


async def test_a_fork_bomb_is_stopped(sandbox: BubblewrapSandbox) -> None:
    """It ends with its time, and the sandbox is usable afterwards."""
    result = await sandbox.run(Command(shell=":(){ :|:& };:; sleep 5", timeout=1))
    assert result.exit.reason == "timeout"
    assert result.exit.wall_seconds < 5
    await sandbox.kill_all()
    assert await alive(sandbox)


async def test_a_memory_bomb_is_stopped(sandbox: BubblewrapSandbox) -> None:
    """One process meets its own limit; the agent lives."""
    code = "b = []\nfor _ in range(100): b.append(bytearray(10 << 20))\nprint('GOT', len(b))"
    assert "GOT" not in await python(sandbox, code)
    assert await alive(sandbox)


async def test_many_processes_together_meet_the_limit_of_the_whole(
    sandbox: BubblewrapSandbox,
) -> None:
    """Where control groups hold, the sum of all memory is bounded and the end is called `oom`."""
    if "cgroup" not in sandbox.isolation:
        pytest.skip("no control groups here: memory is bounded for each process alone")
    body = "import time; b = bytearray(100 << 20); time.sleep(1); print(len(b))"
    one = f"{sandbox.python} -ISE -c '{body}' & all=\"$all $!\""
    four = f"{one}; {one}; {one}; {one}; for each in $all; do wait $each || exit 3; done"
    result = await sandbox.run(Command(shell=four))
    assert result.stdout.count(b"104857600") < 4
    assert result.exit.reason == "oom"
    assert await alive(sandbox)


async def test_open_files_and_threads_are_limited(sandbox: BubblewrapSandbox) -> None:
    """Both stop far below what a program asks for."""
    code = """
import os, threading, time
count = 0
try:
    while count < 500: os.open("/dev/null", 0); count += 1
except OSError: print("files", count < 70)
count = 0
try:
    while count < 500:
        threading.Thread(target=time.sleep, args=(1,), daemon=True).start()
        count += 1
except RuntimeError: print("threads", count < 70)
os._exit(0)
"""
    command = Command((sandbox.python, "-ISuEc", code), timeout=20)
    assert (await sandbox.run(command)).stdout == b"files True\nthreads True\n"


async def test_empty_files_without_number_are_stopped(sandbox: BubblewrapSandbox) -> None:
    """They are counted over all folders that can be written, and room can be made again."""
    code = """
import os
made = 0
try:
    for number in range(3000):
        for folder in ("/repo", "/tmp", "/dev/shm"):
            os.close(os.open(f"{folder}/{number}", os.O_CREAT))
            made += 1
except OSError as error:
    print(error.strerror, 4900 < made < 5000)
"""
    assert await python(sandbox, code) == "No space left on device True"
    assert await said(sandbox, "rm /tmp/[0-9]*; echo x >/repo/x; cat /repo/x") == "x\n"


async def test_one_limit_holds_for_all_that_is_written(sandbox: BubblewrapSandbox) -> None:
    """Folders share the disk, and what is written is known without asking inside."""
    fill = "head -c 20M /dev/zero >/repo/f && head -c 20M /dev/zero >/tmp/f && echo both"
    assert await said(sandbox, fill) == "both\n"
    assert 40 * MIB <= ((await sandbox.usage()).disk_bytes or 0) <= 41 * MIB
    assert "No space left" in await said(sandbox, "head -c 20M /dev/zero >/dev/shm/f")
    await said(sandbox, "rm /repo/f /tmp/f /dev/shm/f")
    assert ((await sandbox.usage()).disk_bytes or 0) < MIB


async def test_what_is_paused_uses_no_time(sandbox: BubblewrapSandbox) -> None:
    """It goes on where it was, for whoever called meanwhile, and the time is counted."""
    counting = "while :; do n=$((n + 1)); echo $n >/repo/n; done"
    running = asyncio.create_task(sandbox.run(Command(shell=counting, timeout=60)))
    await said(sandbox, "until [ -s /repo/n ]; do :; done")
    await sandbox.pause()
    before = (await sandbox.usage()).cpu_seconds
    await asyncio.sleep(0.2)
    usage = await sandbox.usage()
    if before is not None:
        assert (usage.cpu_seconds or 0) - before < 0.05
    assert 0.2 <= usage.frozen_seconds <= usage.wall_seconds
    await sandbox.resume()
    assert await said(sandbox, "a=$(cat n); until [ $(cat n) -gt $((a + 3)) ]; do :; done; echo on")
    running.cancel()


async def test_output_without_end_is_cut(sandbox: BubblewrapSandbox) -> None:
    """What is kept is head and tail; beyond the limit the command is ended."""
    result = await sandbox.run(Command(shell="head -c 50000000 /dev/zero | tr '\\0' x; echo end"))
    assert result.exit.stdout_bytes == 50_000_004
    assert result.exit.stdout_omitted == 50_000_004 - 65_536
    assert len(result.stdout) == 65_536
    assert result.stdout.endswith(b"xend\n")
    endless = await sandbox.run(Command(shell="yes", kill_after_bytes=1 << 20))
    assert endless.exit.reason == "output_limit"
    assert endless.exit.wall_seconds < 10


async def test_a_hundred_megabytes_pass_raw(sandbox: BubblewrapSandbox) -> None:
    """Raw output is whole, whatever its size, also where the reader is slow at first."""
    total = 0
    command = Command(shell="head -c 100000000 /dev/zero", raw=True, timeout=60)
    async for item in sandbox.exec(command):
        total += len(getattr(item, "data", b""))
    assert total == 100_000_000


async def test_nothing_survives_a_timeout(sandbox: BubblewrapSandbox) -> None:
    """New sessions, cleared environments and double forks end with the command that made them."""
    shell = (
        "trap '' TERM INT HUP; setsid env -i /bin/bash -c 'setsid sleep 987 & setsid sleep 986 &'; "
        "while :; do sleep 1; done"
    )
    result = await sandbox.run(Command(shell=shell, timeout=0.5))
    assert result.exit.reason == "timeout"
    assert result.exit.wall_seconds < 3
    assert "sleep 98" not in await said(
        sandbox, "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline; done | grep -o 'sleep [9]8.'"
    )


async def test_strays_end_with_their_command(sandbox: BubblewrapSandbox) -> None:
    """The end is that of the main process; what it left is ended, unless it may stay."""
    begin = time.monotonic()
    left = await sandbox.run(Command(shell="setsid sleep 985 & echo started"))
    assert left.stdout == b"started\n"
    assert time.monotonic() - begin < 5
    assert await said(sandbox, "pgrep -c sleep") == "0\n"
    await sandbox.run(Command(shell="sleep 984 & echo started", background=True))
    assert await said(sandbox, "pgrep -c sleep") == "1\n"
    await sandbox.kill_all()
    assert await said(sandbox, "pgrep -c sleep") == "0\n"


async def test_a_command_that_nobody_awaits_ends(sandbox: BubblewrapSandbox) -> None:
    """Cancelling the caller ends the command inside."""
    task = asyncio.create_task(sandbox.run(Command(shell="sleep 983")))
    await said(sandbox, "until pgrep -f 'sleep 983'; do :; done")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "sleep" not in await said(sandbox, "while pgrep -x sleep; do :; done; ps ax")


async def test_standard_input_that_is_not_read_blocks_nobody(sandbox: BubblewrapSandbox) -> None:
    """A command may ignore megabytes of input while others run."""
    ignoring = asyncio.create_task(
        sandbox.run(Command(shell="sleep 1; echo done", stdin=b"x" * (8 << 20)))
    )
    assert await alive(sandbox)
    assert (await ignoring).stdout == b"done\n"
    echoed = await sandbox.run(Command(shell="cat", stdin=b"y" * (8 << 20), raw=True))
    assert len(echoed.stdout) == 8 << 20
