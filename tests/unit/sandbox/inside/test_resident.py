"""The resident agent, run without walls as a child of the test."""

import asyncio
import os
import socket
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from tests.agents import LIMITS, frame, over_pipes, ran

from turnout.errors import SandboxDiedError
from turnout.sandbox.base import Command, Exit
from turnout.sandbox.channel import receive_listener
from turnout.sandbox.inside import wire
from turnout.sandbox.inside.resident.command import Command as Running

MIB = 1 << 20
NAP = f"sleep 31.{os.getpid()}"


def napping() -> list[str]:
    """Return the states of the processes of this machine that take our nap."""
    states = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            line = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            status = (path / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if line.startswith(NAP):
            states.append(status[0])
    return states


async def napped(count: int) -> None:
    """Wait until so many processes take our nap."""
    async with asyncio.timeout(10):
        for _ in iter(lambda: len(napping()) >= count, True):
            await asyncio.sleep(0.01)


def descriptors(pid: int) -> int:
    """Return how many descriptors a process has."""
    try:
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    except PermissionError:
        pytest.skip("only root sees the descriptors of a process that hides them")


def resident_bytes(pid: int) -> int:
    """Return what a process holds in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def test_commands_do_not_inherit_the_channel(tmp_path: Path) -> None:
    """An agent on its standard input and output gives none of it away."""
    async with over_pipes(tmp_path) as (channel, _):
        result = await ran(channel, "cat; echo out; ls /proc/self/fd")
        assert result.stdout == b"out\n0\n1\n2\n3\n"


async def test_large_files_go_through_pipes(tmp_path: Path) -> None:
    """A channel over pipes is as whole as one over a socket, in both directions."""
    data = bytes(range(256)) * (20 * MIB // 256)
    async with over_pipes(tmp_path) as (channel, _):
        assert (await channel.upload(b"-1\0file", data)).done
        assert (tmp_path / "file").read_bytes() == data
        reply = await channel.request(wire.READ_FILE, b"0\x008000000\0/workspace/file")
        assert reply.payload[wire.READ.size :] == data[:8000000]


async def test_the_end_of_the_channel_ends_everything(tmp_path: Path) -> None:
    """Whatever sessions and environments processes have put between themselves and the agent."""
    script = f"setsid env -i setsid {NAP} & ({NAP} &) ; {NAP} & echo up; wait"
    async with over_pipes(tmp_path) as (channel, agent):
        items = channel.exec(Command(shell=script, cwd="."))
        await anext(items)
        await napped(3)
    with pytest.raises(SandboxDiedError):
        await anext(items)
    assert agent.returncode == 0
    assert napping() == []


async def test_without_walls_only_its_own_are_signalled(tmp_path: Path) -> None:
    """Killing all means those that it started, and their descendants."""
    other = await asyncio.create_subprocess_exec(*NAP.split())
    try:
        await napped(1)
        async with over_pipes(tmp_path) as (channel, _):
            await channel.request(wire.KILL_ALL, b"")
            await channel.freeze()
            assert len(napping()) == 1
            assert "T" not in napping()
    finally:
        other.kill()
        await other.wait()


async def test_freezing_stops_every_process_but_the_agent(tmp_path: Path) -> None:
    """What is started meanwhile runs, and its end ends nothing that stands still."""
    async with over_pipes(tmp_path) as (channel, _):
        items = channel.exec(Command(shell=f"setsid {NAP} & echo up; {NAP}", cwd="."))
        await anext(items)
        await napped(2)
        await channel.freeze()
        assert napping() == ["T", "T"]
        assert (await ran(channel, "echo meanwhile")).stdout == b"meanwhile\n"
        assert napping() == ["T", "T"]
        await channel.thaw()
        assert "T" not in napping()
        await channel.request(wire.KILL_ALL, b"")
        ended = await anext(items)
        assert isinstance(ended, Exit)
        assert ended.reason == "cancelled"


def test_time_stands_still_for_a_frozen_command() -> None:
    """Deadline and kill move by as long as it was frozen; freezing twice counts once."""
    command = Running(1, 10, 0, background=False)
    begin = command.started
    command.kill_at = begin + 11
    command.freeze(begin + 2)
    command.freeze(begin + 4)
    assert command.due() > begin + 1e6
    command.thaw(begin + 7)
    command.thaw(begin + 9)
    assert (command.deadline, command.kill_at) == (begin + 15, begin + 16)
    assert command.due() == command.deadline


@pytest.mark.parametrize("way", ["fd", "path"])
async def test_a_listening_socket_is_handed_over_before_anything_runs(
    tmp_path: Path, way: str
) -> None:
    """Either over a descriptor of its own or over a unix socket at a path."""
    with ExitStack() as stack:
        if way == "fd":
            ours, theirs = map(stack.enter_context, socket.socketpair())
            words, fds = [f"egress=fd:{theirs.fileno()}", "port=0"], (theirs.fileno(),)
        else:
            ours = stack.enter_context(socket.socket(socket.AF_UNIX))
            ours.bind(str(tmp_path / "door"))
            ours.listen()
            words, fds = [f"egress=path:{tmp_path}/door", "port=0"], ()
        async with over_pipes(tmp_path, *words, pass_fds=fds) as (channel, _):
            listener = stack.enter_context(await receive_listener(ours, 5))
            port = listener.getsockname()[1]
            line = f"exec 9<>/dev/tcp/127.0.0.1/{port}; echo connected >&9; ls /proc/self/fd"
            assert b"9" in (await ran(channel, line)).stdout
            with listener.accept()[0] as accepted:
                assert accepted.recv(100) == b"connected\n"


async def test_all_together_are_held_to_their_memory(tmp_path: Path) -> None:
    """The largest is ended and its command says so; one that goes on well is not blamed."""
    limits = replace(LIMITS, memory_bytes=120 * MIB)
    hold = "import sys, time; b = bytearray(int(sys.argv[1]) << 20); time.sleep(30)"
    one = f"/usr/bin/env python3 -ISE -c '{hold}'"
    async with over_pipes(tmp_path, "watch=1", limits=limits) as (channel, _):
        result = await ran(channel, f"{one} 50 & {one} 90 & large=$!; wait $large")
        assert result.exit.reason == "oom"
        assert result.exit.code == 137
        assert result.exit.wall_seconds < 15
        fine = await ran(channel, f"{one} 50 & {one} 90 & wait $!; kill %1; echo well")
        assert (fine.exit.reason, fine.stdout) == ("exited", b"well\n")


async def test_memory_that_processes_share_counts_once(tmp_path: Path) -> None:
    """No limit of a single process holds it; each is charged with its part."""
    limits = replace(LIMITS, memory_bytes=120 * MIB)
    hold = "import mmap, os, sys, time; m = mmap.mmap(-1, int(sys.argv[1]) << 20)\n"
    hold += "os.fork(); [m.write(bytes(1 << 20)) for _ in range(len(m) >> 20)]\n"
    hold += "time.sleep(float(sys.argv[2]))"
    one = f"/usr/bin/env python3 -ISE -c '{hold}'"
    async with over_pipes(tmp_path, "watch=1", limits=limits) as (channel, _):
        assert (await ran(channel, f"{one} 80 0.8")).exit.reason == "exited"
        assert (await ran(channel, f"{one} 150 30")).exit.reason == "oom"


async def test_what_is_given_up_leaves_no_file(tmp_path: Path) -> None:
    """Neither an upload that was left nor one that was refused."""
    async with over_pipes(tmp_path) as (channel, agent):
        assert agent.stdin is not None
        for piece in (
            frame(wire.WRITE_FILE, 900, b"-1\0left"),
            frame(wire.INPUT, 900, b"data"),
            frame(wire.CANCEL, 900),
            frame(wire.WRITE_FILE, 901, b"-1\0../refused"),
            frame(wire.INPUT, 901, b"data"),
            frame(77, 902, b"unknown"),
            frame(wire.CREDIT_FRAME, 903, wire.CREDIT.pack(1)),
        ):
            agent.stdin.write(piece)
        assert (await ran(channel, "ls -A")).stdout == b""


async def test_limits_are_those_that_were_given(tmp_path: Path) -> None:
    """Open files, size of a file, no core; processes only where they are its own."""
    limits = replace(LIMITS, open_files=99, file_bytes=3 * MIB, memory_bytes=64 * MIB)
    async with over_pipes(tmp_path, limits=limits) as (channel, _):
        said = await ran(channel, "ulimit -n; ulimit -f; ulimit -c; ulimit -d")
        assert said.stdout.split() == [b"99", b"3072", b"0", b"65536"]


async def test_many_commands_leave_nothing_in_the_agent(tmp_path: Path) -> None:
    """Neither descriptors nor memory grow with their number."""
    async with over_pipes(tmp_path) as (channel, agent):
        await asyncio.gather(*(ran(channel, "cat & echo x >&2") for _ in range(20)))
        before = descriptors(agent.pid), resident_bytes(agent.pid)
        for _ in range(10):
            await asyncio.gather(*(ran(channel, "cat & echo x >&2") for _ in range(20)))
        assert descriptors(agent.pid) == before[0]
        assert resident_bytes(agent.pid) < before[1] + MIB
