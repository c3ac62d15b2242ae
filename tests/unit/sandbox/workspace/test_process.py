import asyncio
import sys
import time
from pathlib import Path

import pytest

from turnout.sandbox.workspace.process import run_program

SERVICE = """
import asyncio, sys
from turnout.sandbox.workspace.process import run_program
sleep = ["sh", "-c", 'echo $$ >"$1.new"; mv "$1.new" "$1"; exec sleep 986', "sh", sys.argv[1]]
asyncio.run(run_program(sleep, timeout=60))
"""


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def _written(path: Path) -> None:
    for _ in range(1000):
        if _text(path):
            return
        await asyncio.sleep(0.01)


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


async def test_status_and_both_streams_come_back():
    """A program's exit status and what it printed are told apart."""
    done = await run_program(["/bin/sh", "-c", "echo out; echo err >&2; exit 3"], timeout=10)
    assert (done.code, done.stdout, done.stderr, done.ok) == (3, b"out\n", "err\n", False)


async def test_output_is_cut_at_the_cap_and_the_program_goes_on():
    """More output than the cap neither fills the memory nor blocks the program."""
    done = await run_program(["/usr/bin/head", "-c", "3000000", "/dev/zero"], timeout=10, cap=1000)
    assert done.ok
    assert len(done.stdout) == 1000


async def test_a_program_out_of_time_is_ended_with_its_children(tmp_path):
    """After the time-out nothing of the group is left, and the caller did not wait for it."""
    script = f"sleep 60 & echo $! > {tmp_path}/pid; wait"
    started = time.monotonic()
    done = await run_program(["/bin/sh", "-c", script], timeout=0.3)
    assert done.code is None
    assert time.monotonic() - started < 10
    assert not _alive(int((tmp_path / "pid").read_text()))


async def test_a_child_that_keeps_the_pipe_is_not_waited_for():
    """A daemon of its own session holds the output open; the program's end is enough."""
    started = time.monotonic()
    done = await run_program(["/bin/sh", "-c", "setsid sleep 5 & echo x"], timeout=60)
    assert done.stdout == b"x\n"
    assert time.monotonic() - started < 4


async def test_there_is_no_input_and_no_terminal():
    """A program that asks reads the end of its input and finds nobody to ask."""
    script = "read x; echo got:$x; (: < /dev/tty) 2>/dev/null && echo terminal"
    done = await run_program(["/bin/sh", "-c", script], timeout=10)
    assert done.stdout == b"got:\n"


async def test_a_cancelled_program_is_ended(tmp_path):
    """Cancelling the caller leaves no process behind."""
    script = f"echo $$ > {tmp_path}/pid; exec sleep 60"
    task = asyncio.create_task(run_program(["/bin/sh", "-c", script], timeout=60))
    await _written(tmp_path / "pid")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not _alive(int((tmp_path / "pid").read_text()))


@pytest.mark.chaos
async def test_a_program_ends_with_a_service_that_is_killed(tmp_path):
    """Nothing that the host started for a run outlives it."""
    service = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVICE, str(tmp_path / "pid")
    )
    async with asyncio.timeout(20):
        for _ in iter((tmp_path / "pid").exists, True):
            await asyncio.sleep(0.01)
    service.kill()
    await service.wait()
    pid = int((tmp_path / "pid").read_text())
    async with asyncio.timeout(2):
        for _ in iter(lambda: _alive(pid), False):
            await asyncio.sleep(0.01)
