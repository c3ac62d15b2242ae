"""What every kind of sandbox that runs commands does with them."""

import asyncio
import gc
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.contract.sandbox_kinds import KINDS, Kind, nap, nappers, said

from turnout.sandbox.base import Command, Exit, Output, Sandbox

pytestmark = pytest.mark.asyncio(loop_scope="module")

STRAYS = f"setsid {nap(1)} & (setsid env -i /bin/bash -c 'setsid {nap(1)} & setsid {nap(1)} &')"


@pytest_asyncio.fixture(
    scope="module", loop_scope="module", params=sorted(KINDS.keys() - {"scripted"})
)
async def kind(request: pytest.FixtureRequest, sandbox_state: Path) -> AsyncIterator[Kind]:
    """Open each kind that runs commands."""
    async with KINDS[request.param](sandbox_state) as opened:
        yield opened


async def test_both_streams_and_the_status_come_back(sandbox: Sandbox) -> None:
    """Arguments are passed as they are; the end counts what was printed."""
    script = 'printf %s "$1"; printf err >&2; exit 7'
    result = await sandbox.run(Command(("/bin/sh", "-c", script, "sh", "a b\n\udcff")))
    assert (result.stdout, result.stderr) == (b"a b\n\xff", b"err")
    ended = result.exit
    assert (ended.reason, ended.code, ended.signal) == ("exited", 7, None)
    assert (ended.stdout_bytes, ended.stderr_bytes, ended.stdout_omitted) == (5, 3, 0)
    assert not result.ok


async def test_output_comes_while_the_command_runs(sandbox: Sandbox) -> None:
    """The first line is read before the command is allowed to end."""
    items = sandbox.exec(Command(shell="echo first; until [ -e go ]; do sleep 0.01; done"))
    assert await anext(items) == Output("stdout", b"first\n")
    await sandbox.write("go", b"")
    ended = await anext(items)
    assert isinstance(ended, Exit)
    assert ended.code == 0
    assert [item async for item in items] == []


async def test_a_signal_is_told_apart_from_a_status(sandbox: Sandbox) -> None:
    """A command that was killed has no status."""
    ended = (await sandbox.run(Command(shell="kill -9 $$"))).exit
    assert (ended.reason, ended.code, ended.signal) == ("exited", None, 9)


async def test_what_cannot_be_started_says_why(sandbox: Sandbox) -> None:
    """No such program and no such folder are ends, not errors, and the sandbox goes on."""
    for command in (Command(("no-such-program",)), Command(("true",), cwd="no/such/folder")):
        ended = (await sandbox.run(command)).exit
        assert (ended.reason, ended.code) == ("not_started", None)
        assert "no" in ended.error.lower()
        assert ended.cpu_seconds is None
    assert await said(sandbox, "echo on") == "on\n"


async def test_standard_input_is_passed_on(sandbox: Sandbox) -> None:
    """Whole, in pieces, or none: then the command reads its end at once."""

    async def pieces() -> AsyncIterator[bytes]:
        yield b"a"
        await asyncio.sleep(0)
        yield b""
        yield b"b"

    large = bytes(range(256)) * 20_000
    assert (await sandbox.run(Command(("cat",), stdin=large, raw=True))).stdout == large
    assert (await sandbox.run(Command(("cat",), stdin=pieces()))).stdout == b"ab"
    assert (await sandbox.run(Command(("cat",), stdin=b""))).ok
    assert (await sandbox.run(Command(("cat",)))).ok


async def test_input_that_fails_ends_the_command(sandbox: Sandbox) -> None:
    """The caller gets the error of its own input, and nothing runs on."""

    async def broken() -> AsyncIterator[bytes]:
        yield b"a"
        raise LookupError("lost")

    with pytest.raises(LookupError, match="lost"):
        await sandbox.run(Command(shell=f"cat; {nap(2)}", stdin=broken(), timeout=30))
    assert await nappers(sandbox, 2) == 0


async def test_a_timeout_ends_politely_first(sandbox: Sandbox) -> None:
    """TERM may be answered; whoever ignores it is killed a second later."""
    polite = Command(shell="trap 'echo bye; exit 3' TERM; sleep 30 & wait", timeout=2)
    result = await sandbox.run(polite)
    assert (result.exit.reason, result.exit.code, result.stdout) == ("timeout", 3, b"bye\n")
    rude = "trap '' TERM INT HUP; while :; do sleep 0.1; done"
    ended = (await sandbox.run(Command(shell=rude, timeout=0.2))).exit
    assert (ended.reason, ended.signal) == ("timeout", 9)
    assert 1.0 < ended.wall_seconds < 5


async def test_nothing_outlives_its_command(sandbox: Sandbox) -> None:
    """New sessions, cleared environments and double forks end with what started them."""
    begin = time.monotonic()
    assert (await sandbox.run(Command(shell=f"{STRAYS}; echo up"))).stdout == b"up\n"
    assert await nappers(sandbox, 1) == 0
    late = await sandbox.run(Command(shell=f"{STRAYS}; sleep 30", timeout=0.3))
    assert late.exit.reason == "timeout"
    assert await nappers(sandbox, 1) == 0
    assert time.monotonic() - begin < 20


async def test_the_background_stays_until_all_are_killed(sandbox: Sandbox) -> None:
    """What a command may leave behind lives on beside others."""
    await sandbox.run(Command(shell=f"{nap(3)} & echo up", background=True))
    assert await nappers(sandbox, 3, at_least=1) == 1
    assert (await sandbox.run(Command(("true",)))).ok
    assert await nappers(sandbox, 3) == 1
    await sandbox.kill_all()
    assert await nappers(sandbox, 3) == 0


async def test_killing_all_cancels_what_runs(sandbox: Sandbox) -> None:
    """The caller of a command is told that it was cancelled."""
    items = sandbox.exec(Command(shell="echo up; sleep 30"))
    await anext(items)
    await sandbox.kill_all()
    ended = await anext(items)
    assert isinstance(ended, Exit)
    assert (ended.reason, ended.signal) == ("cancelled", 9)


async def test_a_command_that_nobody_awaits_ends(sandbox: Sandbox) -> None:
    """Leaving the output of a command ends it."""
    items = sandbox.exec(Command(shell=f"echo up; exec {nap(4)}"))
    await anext(items)
    assert await nappers(sandbox, 4, at_least=1) == 1
    await items.aclose()
    assert await nappers(sandbox, 4) == 0


async def test_no_signal_that_can_be_blocked_ends_the_agent(sandbox: Sandbox) -> None:
    """A command may send its parent what it likes."""
    line = "for each in HUP INT QUIT USR1 USR2 ALRM TERM CHLD CONT IO; do kill -$each $PPID; done"
    assert await said(sandbox, line) == ""
    assert await said(sandbox, "echo on") == "on\n"


async def test_head_and_tail_of_an_output_are_kept(sandbox: Sandbox) -> None:
    """What lies between them is counted; far too much ends the command."""
    numbers = Command(shell="seq 1 100000", head=10, tail=14)
    result = await sandbox.run(numbers)
    assert result.stdout == b"1\n2\n3\n4\n5\n99999\n100000\n"[:10] + b"\n99999\n100000\n"
    assert result.exit.stdout_bytes == 588_895
    assert result.exit.stdout_omitted == 588_895 - 24
    endless = (await sandbox.run(Command(shell="yes", kill_after_bytes=1 << 20))).exit
    assert endless.reason == "output_limit"
    raw = await sandbox.run(Command(shell="seq 1 100000", raw=True, kill_after_bytes=100, head=1))
    assert len(raw.stdout) == 588_895


async def test_folders_and_variables_are_those_that_were_asked_for(sandbox: Sandbox) -> None:
    """Both names of the workspace are one folder; a variable may replace a given one."""
    await sandbox.write("sub/file", b"")
    for folder in ("sub", "/repo/sub", "/workspace/sub", "./sub/../sub"):
        assert (await sandbox.run(Command(("ls",), cwd=folder))).stdout == b"file\n"
    shown = await sandbox.run(Command(shell='echo "$LANG $MINE $HOME"', env={"MINE": "a=b c"}))
    assert shown.stdout.startswith(b"C.UTF-8 a=b c /")
    assert (
        await said(sandbox, 'cd "$HOME" && [ -w . ] && [ -w "$TMPDIR" ] && echo ours') == "ours\n"
    )


async def test_nothing_of_our_environment_gets_in(
    sandbox: Sandbox, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys of the service are in no variable of a command, nor of the agent that starts it."""
    monkeypatch.setenv("LLM_API_KEY", "sk-secret-key")
    assert "sk-secret" not in await said(sandbox, "env; cat /proc/$PPID/environ")
    for name in (await said(sandbox, "env")).splitlines():
        assert name.split("=")[0] not in ("LLM_API_KEY", "LLM_BASE_URL", "TURNOUT_HOME")


async def test_a_command_that_cannot_be_passed_is_refused(sandbox: Sandbox) -> None:
    """A NUL byte would end a field."""
    with pytest.raises(ValueError, match="NUL"):
        await sandbox.run(Command(("echo", "a\0b")))
    assert await said(sandbox, "echo on") == "on\n"


async def test_what_a_command_used_is_measured(sandbox: Sandbox) -> None:
    """CPU time and memory of the main process and of the children that it waited for."""
    burn = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done"
    busy = (await sandbox.run(Command(shell=f"/bin/bash -c '{burn}'; true"))).exit
    idle = (await sandbox.run(Command(shell="sleep 0.2"))).exit
    assert busy.cpu_seconds is not None
    assert idle.cpu_seconds is not None
    assert idle.cpu_seconds < busy.cpu_seconds < busy.wall_seconds + 0.5
    large = (await sandbox.run(Command(shell="head -c 64M /dev/zero | tail -c 48M | wc -c"))).exit
    assert large.peak_memory_bytes is not None
    assert idle.peak_memory_bytes is not None
    assert large.peak_memory_bytes > 48 << 20 > idle.peak_memory_bytes


async def test_commands_run_beside_one_another(sandbox: Sandbox) -> None:
    """The slow one does not hold the quick ones up, and each gets its own output."""
    slow = asyncio.create_task(said(sandbox, "until [ -e go ]; do sleep 0.01; done; echo slow"))
    said_by = await asyncio.gather(*(said(sandbox, f"echo {number}") for number in range(8)))
    assert said_by == [f"{number}\n" for number in range(8)]
    await sandbox.write("go", b"")
    assert await slow == "slow\n"


async def test_many_small_commands_leave_nothing(sandbox: Sandbox) -> None:
    """Neither here nor inside does anything grow with the number of commands."""

    def descriptors() -> int:
        gc.collect()
        return len(list(Path("/proc/self/fd").iterdir()))

    await sandbox.run(Command(("true",)))
    before = descriptors()
    for _ in range(100):
        assert (await sandbox.run(Command(("true",), stdin=b"x"))).ok
    # What is still under way for one of them may hold a few.
    assert descriptors() < before + 10
    assert await said(sandbox, "ls /proc/self/fd | wc -l") == "4\n"
