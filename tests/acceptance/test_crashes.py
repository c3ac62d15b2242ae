"""A killed `turnout run` leaves nothing behind, and the next start says what became of it."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.acceptance.command import PLAN, TASK, Command
from tests.sandboxes import cgroups, processes

from turnout.testing.model_server import Call, RecordedRequest, ScriptedModelServer, Turn
from turnout.testing.repositories import TinyRepository

pytestmark = pytest.mark.chaos


def of_the_run(state: Path, marker: str) -> list[str]:
    """Return the command lines of processes that a run has started."""
    return [line for line in processes().values() if marker in line or str(state) in line]


async def until(what: Callable[[], bool], *, seconds: float) -> None:
    """Wait until something is so; `TimeoutError` where it takes too long."""
    async with asyncio.timeout(seconds):
        for _ in iter(what, True):
            await asyncio.sleep(0.02)


async def killed_run(turnout: Command, pages: TinyRepository, marker: str) -> None:
    """Kill a run while a command of its model works in the sandbox."""
    sleep = Turn(calls=(Call("run", {"command": f"sleep {marker}"}),))
    turns = [PLAN, sleep]

    def script(request: RecordedRequest) -> Turn:
        return turns.pop(0)

    async with ScriptedModelServer(script, models=["m"]) as server:
        command = turnout.using(server.base_url)
        process = await command.start("run", TASK, "--repo", str(pages), "--surface", "shell")
        await until(lambda: any(marker in line for line in processes().values()), seconds=120)
        process.kill()
        await process.communicate()


async def test_a_killed_run_leaves_nothing_and_is_not_shown_as_running(
    turnout: Command, pages: TinyRepository, tmp_path: Path
) -> None:
    """Processes end at once; groups, files and the open record are settled by the next start."""
    state = tmp_path / "state"
    state.mkdir(mode=0o711)
    turnout = turnout.where(TURNOUT_HOME=str(state))
    marker = f"95{os.getpid()}"
    await killed_run(turnout, pages, marker)
    await until(lambda: not of_the_run(state, marker), seconds=2)
    names = {path.stem for path in (state / "sandboxes").iterdir()}
    assert str(state) not in await asyncio.to_thread(Path("/proc/mounts").read_text)
    (left,) = (await turnout("runs", "list", "--json")).object["runs"]
    assert left["outcome"] is None
    async with ScriptedModelServer([], models=["m"]) as server:
        await turnout.using(server.base_url)("run", "x", "--repo", str(pages), "--base", "nope")
    (closed,) = (await turnout("runs", "list", "--json")).object["runs"]
    assert (closed["run_id"], closed["outcome"]) == (left["run_id"], "failed")
    shown = await turnout("runs", "show", left["run_id"])
    assert "The process that worked on it is gone." in shown.out
    assert not list((state / "sandboxes").iterdir())
    assert not list((state / "running").iterdir())
    assert not names & {Path(group).name for group in cgroups()}
