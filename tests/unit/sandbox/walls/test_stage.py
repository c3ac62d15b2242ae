"""Plans of stages, and descriptors that come with them."""

import asyncio
import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from turnout.errors import SandboxUnavailableError
from turnout.sandbox.base import Limits, Mount
from turnout.sandbox.walls import stage
from turnout.sandbox.walls.contents import Contents, Tree, laid_over
from turnout.sandbox.walls.identity import Identity
from turnout.sandbox.walls.launch import empty_plan
from turnout.sandbox.walls.launcher import Launcher
from turnout.sandbox.walls.stage import FIRST_FD, Bind, Overlay, Plan, receive


def test_a_plan_is_read_as_it_was_written() -> None:
    """Names that are no text survive as well."""
    plan = empty_plan(Limits(), Identity(5, 6), ["/sys/fs/cgroup/x/cgroup.procs"])._replace(
        overlays=[Overlay("repo", ["/a\udcff", "/b\nc"])],
        binds=[Bind("mount0", "/d")],
        argv=["/bin/true", ""],
    )
    read = Plan.decode(plan.encode())
    assert read.overlays == plan.overlays
    assert read.binds == plan.binds
    assert tuple(read.identity or ()) == (5, 6)
    assert [tuple(folder) for folder in read.folders] == plan.folders
    assert read.argv == plan.argv


def test_descriptors_arrive_closed_to_programs() -> None:
    """No program that is started later inherits one by accident."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        socket.send_fds(ours, [b"x"], [0, 1])
        data, fds = receive(theirs, 10)
        assert data == b"x"
        assert len(fds) == 2
        assert not any(os.get_inheritable(fd) for fd in fds)
        for fd in fds:
            os.close(fd)
        ours.close()
        assert receive(theirs, 10) == (b"", [])


def test_trees_take_the_place_of_mounts() -> None:
    """Layers lie over the tree, and what is numbered lies under it, lowest number first."""
    mounts = (
        Mount("/state/more10", "/base.more/10"),
        Mount("/state/tree", "/base"),
        Mount("/state/more2", "/base.more/2"),
        Mount("/state/git", "/base.git"),
        Mount("/state/env", "/venv"),
    )
    contents = laid_over(Contents(mounts), ["/repo", "/venv"], ["/kept/2", "/kept/1"])
    assert contents.mounts == (Mount("/state/git", "/base.git"),)
    assert contents.trees == (
        Tree(
            "/repo",
            "/base",
            (
                *("/kept/2/repo", "/kept/1/repo", "/state/tree"),
                *("/state/more2", "/state/more10"),
            ),
        ),
        Tree("/venv", "/base.venv", ("/kept/2/venv", "/kept/1/venv", "/state/env")),
    )


def test_without_anything_beneath_a_tree_starts_empty() -> None:
    """A writable mount stays a mount."""
    mounts = (Mount("/state/env", "/venv", writable=True),)
    contents = laid_over(Contents(mounts), ["/repo"])
    assert contents.mounts == mounts
    assert contents.trees == (Tree("/repo", "/base", ()),)


async def test_a_program_finds_its_descriptors_by_number(tmp_path: Path) -> None:
    """Nothing else is open to it, and it needs no stage."""
    reader, writer = os.pipe()
    with os.fdopen(reader) as output:
        argv = ["/bin/bash", "-c", "ls /proc/self/fd >&102; exec sleep 60"]
        plan = empty_plan(Limits(), None, ())._replace(stage="", folders=[], argv=argv)
        try:
            started = await Launcher().start(plan, [writer])
        finally:
            os.close(writer)
        # The launcher was forgotten already, the program was not told.
        assert output.readline() == "0\n"
        started.kill()
        assert await started.ended(5)
        started.close()
        assert set(output.read().split()) == {"1", "2", "3", "102"}


async def test_a_program_that_is_not_there_is_complained_of() -> None:
    """Whoever waits for it learns why."""
    plan = empty_plan(Limits(), None, ())._replace(stage="", folders=[], argv=["/nonexistent"])
    started = await Launcher().start(plan, ())
    assert await started.ended(5)
    assert "No such file" in started.complaints()
    assert started.disk_bytes() is None
    started.close()


async def test_a_plan_that_cannot_be_done_is_an_error(tmp_path: Path) -> None:
    """A group that cannot be entered, say."""
    plan = empty_plan(Limits(), None, [str(tmp_path / "missing" / "cgroup.procs")])
    with pytest.raises(SandboxUnavailableError, match="did not start"):
        await Launcher().start(plan._replace(argv=["/bin/true"]), ())


def forking(folder: Path, *wrapper: str) -> Plan:
    """Return a plan whose program starts a child that tells its pid, and stays."""
    child = f"sh -c 'echo $$ > {folder}/pid && mv {folder}/pid {folder}/child && exec sleep 60'"
    argv = ["/bin/bash", "-c", f"{' '.join([*wrapper, child])} & wait"]
    return empty_plan(Limits(), None, ())._replace(stage="", folders=[], argv=argv)


async def wait_until(done: Callable[[], bool]) -> None:
    """Give the kernel a moment."""
    for _ in range(1000):
        if done():
            return
        await asyncio.sleep(0.005)
    raise TimeoutError


def gone(pid: int) -> bool:
    """Whether a process is no more."""
    return not Path(f"/proc/{pid}").exists()


async def test_what_a_program_has_not_bound_to_itself_ends_with_it(tmp_path: Path) -> None:
    """A child made before the program could say that it is to die with it."""
    launcher = Launcher()
    started = await launcher.start(forking(tmp_path), ())
    await wait_until((tmp_path / "child").exists)
    child = int((tmp_path / "child").read_text())
    started.kill()
    await wait_until(lambda: gone(child))
    started.close()


async def test_orphans_end_with_the_process_that_started_their_parent(tmp_path: Path) -> None:
    """Also those that have made a session of their own and whose parent is gone."""
    launcher = Launcher()
    started = await launcher.start(forking(tmp_path, "setsid"), ())
    await wait_until((tmp_path / "child").exists)
    child = int((tmp_path / "child").read_text())
    started.kill()
    assert await started.ended(5)
    assert not gone(child)
    started.close()
    launcher.close()
    await wait_until(lambda: gone(child))


async def test_a_program_may_be_given_its_standard_streams() -> None:
    """And does not find them under other numbers as well."""
    ours, theirs = socket.socketpair()
    launcher = Launcher()
    show = "read word; echo got $word; ls /proc/self/fd | wc -l"
    plan = empty_plan(Limits(), None, ())._replace(
        stage="", folders=[], argv=["/bin/sh", "-c", show], stdio=(FIRST_FD, FIRST_FD)
    )
    with ours:
        with theirs:
            started = await launcher.start(plan, [theirs.fileno()])
        ours.sendall(b"this\n")
        said = await asyncio.to_thread(lambda: ours.makefile("rb").read())
    assert await started.ended(5)
    started.close()
    launcher.close()
    word, descriptors = said.decode().splitlines()
    assert word == "got this"
    assert int(descriptors) <= 5


@pytest.mark.skipif(
    os.geteuid() != 0, reason="only root has a uid to itself, to count its processes"
)
def test_a_machine_without_room_for_a_process_ends_no_sandbox(tmp_path: Path) -> None:
    """The plan is refused, what serves others goes on."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    limit = "import resource; resource.setrlimit(resource.RLIMIT_NPROC, (2, 2))"
    program = f"{limit}; import runpy, sys; sys.argv[:] = sys.argv[1:]; runpy.run_path("
    program += "sys.argv[0], run_name='__main__')"
    argv = ["/usr/bin/python3", "-ISEc", program, stage.__file__, "serve", str(theirs.fileno())]
    uid = 1_700_000_000 + os.getpid()
    # It is not waited for, so that it counts beside the one that it has left behind.
    with subprocess.Popen(argv, pass_fds=[theirs.fileno()], user=uid, group=uid), ours:
        theirs.close()
        ours.settimeout(10)
        for _ in range(2):
            reader, writer = os.pipe()
            socket.send_fds(ours, [b"{}"], [writer, writer])
            os.close(writer)
            with os.fdopen(reader, "rb") as complaints:
                assert b"unavailable" in complaints.read()
